"""What a trace hands out, and what it makes of the answer."""

from __future__ import annotations

import dataclasses
import json
from collections import ChainMap
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import pytest
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from shapecheck import Dims, carrier, contract, dtype, ids
from shapecheck.errors import ContractTextError, ShapecheckError
from shapecheck.symbolic import trace
from shapecheck.symbolic.stub import Stub

CONFIGS = Path(__file__).parents[2] / "data" / "configs"


@carrier
@dataclass(slots=True)
class State:
    hidden_states: Annotated[Float[Tensor, "bs recurrent_hidden"], dtype("draft")]
    tokens: Annotated[Int64[Tensor, "bs topk"], ids("draft")]
    extend: Annotated[Float[Tensor, "bs extend_hidden"], dtype("target")] | None


@contract(phase="add")
def add(left: State, right: State, dims: Dims, times: int = 2) -> State:
    return State(left.hidden_states + times * right.hidden_states, left.tokens, None)


@contract(phase="extend")
def misuse(state: State, target: Float[Tensor, "bs target_hidden"], dims: Dims) -> None:
    state.hidden_states.float() + target


def test_carriers_come_from_their_contract():
    with trace() as t:
        state = t.make(State, bs="bs*topk")
        assert t.shape(state.hidden_states) == "[bs*topk, draft_hidden]"
        assert t.shape(state.extend) == "[bs*topk, num_aux*target_hidden]"
        assert state.hidden_states.dtype == t.dtype("draft")
        assert state.extend.dtype == t.dtype("target")
        assert str(t.domains.of(state.tokens)) == "draft_vocab ids"


def test_a_width_that_the_pair_lacks_makes_its_field_none():
    dims = Dims.from_configs(
        CONFIGS / "llama-3-8b", CONFIGS / "eagle-llama-8b", algorithm="eagle", num_steps=3
    )
    sizes = {**dims.sizes, "extend_hidden": dims.sizes["extend_hidden"].model_copy(
        update={"value": None}
    )}  # fmt: skip
    with trace(dims.model_copy(update={"sizes": sizes})) as t:
        pass
    with trace(Dims(sizes=sizes)) as t:
        assert t.make(State).extend is None


def test_contracted_functions_are_called_with_made_arguments():
    with trace() as t:
        added = t.call(add)
        assert t.shape(added.hidden_states) == "[bs, draft_hidden]"
    assert t.report().exit_code == 0


def test_a_contract_does_not_hide_the_meeting_inside():
    with trace() as t:
        t.call(misuse)
    assert [finding.code for finding in t.report().findings] == ["SHP301"]


def test_a_function_without_contract_is_refused():
    with trace() as t, pytest.raises(ShapecheckError, match="it has no @contract"):
        t.call(test_a_function_without_contract_is_refused)


@dataclass(frozen=True)
class Frozen:
    hidden_size: int
    vocab_size: int
    other: str = "kept"


@pytest.mark.parametrize(
    "config",
    [
        {"hidden_size": 3, "vocab_size": 4, "other": "kept"},
        Frozen(3, 4),
        SimpleNamespace(hidden_size=3, vocab_size=4, other="kept"),
    ],
)
def test_configs_hand_out_symbols(config):
    with trace() as t:
        changed = t.config(config, "draft")
        get = changed.__getitem__ if isinstance(changed, dict) else changed.__getattribute__
        assert t.shape(torch.empty(get("hidden_size"))) == "[draft_hidden]"
        assert get("other") == "kept"
    kept = config["hidden_size"] if isinstance(config, dict) else config.hidden_size
    assert kept == 3


def test_a_field_may_have_a_size_of_the_other_model():
    with trace() as t:
        head = t.config(Frozen(3, 4), "draft", vocab_size="target_vocab")
        table = torch.empty((head.vocab_size, head.hidden_size))
        assert t.shape(table) == "[target_vocab, draft_hidden]"


def test_one_dtype_is_an_engines_choice():
    with trace(one_dtype=True) as t:
        assert t.dtype("draft") == t.dtype("target")
        assert t.dims.draft_dtype == t.dims.target_dtype
        t.tensor("bs topk", "draft") + t.tensor("bs topk", "target")
    assert t.report().findings == ()


def test_a_config_without_sizes_is_refused():
    with trace() as t, pytest.raises(ShapecheckError, match="none of hidden_size"):
        t.config(ChainMap(), "draft")


def test_dims_of_a_trace_are_dims():
    with trace() as t:
        assert isinstance(t.dims, Dims)
        assert t.dims.symbolic
        assert t.dims.owner("draft_hidden") == "draft"
        assert t.shape(torch.empty(t.dims["extend_hidden"])) == "[num_aux*target_hidden]"
        with pytest.raises(ShapecheckError, match="not in the vocabulary"):
            t.dims["draft_hiden"]


def test_formulas_of_sizes():
    with trace() as t:
        assert t.shape(t.tensor("bs*num_draft_tokens num_steps+1")) == (
            "[bs*num_draft_tokens, num_steps + 1]"
        )
        with pytest.raises(ContractTextError, match="SHP102"):
            t.tensor("bs hiden")
        with pytest.raises(ShapecheckError, match="one axis is wanted"):
            t.size("bs topk")


@pytest.mark.parametrize("text", ["a is b", "bs = topk", "bs == "])
def test_allow_wants_an_equality(text):
    with trace() as t, pytest.raises(ShapecheckError, match="write it as"):
        t.allow(text, reason="because")


def test_allow_wants_a_reason():
    with trace() as t, pytest.raises(ShapecheckError, match="say why"):
        t.allow("bs == topk", reason=" ")


def test_allow_takes_a_formula():
    with trace() as t:
        t.allow("draft_hidden == num_aux*target_hidden", reason="the head is that wide")
        t.size("draft_hidden")
    assert t.report().allowed[0].text == "draft_hidden == num_aux*target_hidden"


def test_an_error_of_the_traced_code_passes_and_is_kept():
    with pytest.raises(ValueError, match="mine"), trace() as t:
        raise ValueError("mine")
    assert (t.report().stopped or "").startswith("ValueError: mine, at ")
    assert t.report().exit_code == 2


def test_the_report_carries_both_origins_and_their_configs():
    dims = Dims.from_configs(
        CONFIGS / "llama-3-8b", CONFIGS / "llama-3-1b", algorithm="standalone", num_steps=3
    )
    with trace(dims) as t:
        torch.cat([t.tensor("bs draft_hidden"), t.tensor("bs target_hidden")])
    (finding,) = t.report().findings
    assert finding.message.startswith("target_hidden == draft_hidden at test_the_report_")
    assert finding.notes[-1].label == "settle it"
    assert {note.message for note in finding.notes[:-1] if note.span is None} == {
        "hidden_size in llama-3-8b/config.json",
        "hidden_size in llama-3-1b/config.json",
    }
    assert finding.dims.expected, finding.dims.found == ("target_hidden", "draft_hidden")


def test_a_stub_in_a_torch_call_makes_the_run_empty():
    with trace() as t:
        t.tensor("bs topk") + t.tensor("bs topk")
        torch.cat([t.tensor("bs topk"), Stub("kernel", t.recorder.stub_used)])
    report = t.report()
    assert report.exit_code == 2
    assert report.vacuous == "stubbed: cat of kernel did not really run"


def test_two_traces_do_not_mix():
    with trace() as first:
        first.tensor("bs draft_hidden") + first.tensor("bs target_hidden")
    with trace() as second:
        second.tensor("bs topk") + second.tensor("bs topk")
    assert len(first.report().findings) == 1
    assert second.report().findings == ()


def test_json_is_version_one():
    with trace() as t:
        t.tensor("bs draft_hidden") + t.tensor("bs target_hidden")
    document = json.loads(t.report().json())
    assert document["version"] == 1
    assert document["findings"][0]["code"] == "SHP301"
    assert document["summary"]["tier"] == "trace"
    assert document["summary"]["checked_operations"] == 1


def test_reports_do_not_change():
    with trace() as t:
        report = t.report()
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.findings = ()


def test_no_env_holds_its_mode() -> None:
    """With that cycle processes ended in a corrupted heap, after every test had passed."""
    with trace() as t:
        hidden = t.tensor("bs target_hidden")
        assert (hidden + 1).shape == hidden.shape
        mode = hidden.fake_mode
    assert all(value is not mode for value in vars(mode.shape_env).values())
