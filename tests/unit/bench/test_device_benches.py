"""The benches of a device run on a CPU as well, where sizes are tiny and figures mean little."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from engine.carriers import DraftState, VerifyExtendInput
from tests.bench.jaxtyped_carriers import twin_of
from tests.bench.memcheck_run import RUNS, tokens
from tests.bench.patches import Patches

ROOT = Path(__file__).parents[3]


def test_every_level_takes_its_turn(tmp_path: Path) -> None:
    """In a process of its own: it must start with the contracts off."""
    names = []
    for hidden in (64, 32):
        raw = {
            "architectures": ["LlamaForCausalLM"],
            "vocab_size": 300,
            "hidden_size": hidden,
            "intermediate_size": 96,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
        }
        names.append(tmp_path / f"{hidden}.json")
        names[-1].write_text(json.dumps(raw))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.bench.contract_share", "--json", "--rounds", "2"),
            *("--turns", "2", "--context", "6", "--random", ",".join(map(str, names))),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ":".join([str(ROOT), *sys.path]), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["results"]
    assert found["acceptance"].startswith("SYNTHETIC")
    levels = found["levels"]
    assert list(levels) == ["off", "warn", "strict", "full", "jaxtyping + beartype"]
    assert levels["off"]["checks_us"] == 0
    assert levels["off"]["whole_share"] == 0
    assert 0 < levels["strict"]["checks_us"] < levels["full"]["checks_us"]
    assert levels["jaxtyping + beartype"]["checks_us"] > levels["strict"]["checks_us"]


def state(**changed: object) -> dict[str, object]:
    return {
        "topk_p": torch.zeros(2, 3),
        "topk_index": torch.zeros(2, 3, dtype=torch.int64),
        "hidden_states": None,
        "bonus_tokens": torch.zeros(2, dtype=torch.int64),
        **changed,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"topk_p": torch.zeros(3, 3)},
        {"topk_index": torch.zeros(2, 3, dtype=torch.int32)},
        {"hidden_states": torch.zeros(1, 8)},
    ],
)
def test_a_twin_checks_what_jaxtyping_can(wrong: dict[str, object]) -> None:
    twin = twin_of(DraftState)
    twin(**state())
    twin(**state(hidden_states=torch.zeros(2, 8)))
    with pytest.raises(TypeError):
        twin(**state(**wrong))


def test_a_product_is_a_name_in_a_twin() -> None:
    """What jaxtyping gives up: N rows a request are any number, though the same in each field."""
    rows = {
        "hidden_states": None,
        "input_ids": torch.zeros(7, dtype=torch.int64),
        "positions": torch.zeros(7, dtype=torch.int64),
        "accept_lens": torch.zeros(2, dtype=torch.int32),
        "seq_lens": torch.zeros(2, dtype=torch.int64),
        "req_rows_index": torch.zeros(2, dtype=torch.int64),
        "select_index": torch.zeros(2, dtype=torch.int64),
    }
    twin = twin_of(VerifyExtendInput)
    twin(**rows)
    with pytest.raises(TypeError):
        twin(**{**rows, "positions": torch.zeros(6, dtype=torch.int64)})


@pytest.mark.parametrize("name", RUNS)
def test_what_a_memory_checker_watches_decodes_rightly(name: str) -> None:
    plain = tokens("cpu", True, algorithm="none")
    assert [len(each) for each in plain] == [5, 5]
    assert tokens("cpu", True, **RUNS[name]) == plain


class Owner:
    shared = "class"

    @classmethod
    def named(cls) -> str:
        return cls.__name__


def test_patches_are_undone_in_reverse() -> None:
    one = Owner()
    with Patches() as patches:
        patches.set(one, "shared", "first")
        patches.set(one, "shared", "second")
        patches.set(Owner, "named", classmethod(lambda cls: "patched"))
        assert (one.shared, Owner.named()) == ("second", "patched")
    assert vars(one) == {}
    assert (one.shared, Owner.named()) == ("class", "Owner")
