"""The known traps, injected: each is caught where it is made, with the dimension named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import engine.carriers as carriers
from engine.carriers import DraftTree
from engine.errors import EngineError
from engine.kv.pool import KVPool
from engine.llm import LLM
from engine.sampling import SamplingParams
from shapecheck import ShapeContractError

from .conftest import SHAPES, tiny

GREEDY = SamplingParams(max_tokens=12, temperature=0.0, ignore_eos=True)


def caught(llm: LLM, params: SamplingParams = GREEDY) -> str:
    """What running the engine says."""
    with pytest.raises(ShapeContractError) as error:
        llm.generate("hello world", params)
    return str(error.value)


def change(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, change: Callable[[Any], Any]
) -> None:
    """What `owner.name` returns from now on goes through `change`; contracts around it stay on."""
    inner = getattr(owner, name)

    def changed(*args: object, **kwargs: object) -> object:
        return change(inner(*args, **kwargs))

    monkeypatch.setattr(owner, name, changed)


@pytest.fixture
def eagle3(full: None) -> LLM:
    return tiny("eagle3", **SHAPES["tree"])


def test_idle_state_with_the_targets_width(eagle3: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the producer, not in the merge that would fail far away."""
    wrong = torch.zeros
    width = eagle3.engine.dims["recurrent_hidden"]

    def zeros(*sizes: Any, **options: Any) -> Tensor:
        sizes = tuple(64 if size == width else size for size in sizes)
        return wrong(*sizes, **options)

    monkeypatch.setattr(carriers.torch, "zeros", zeros)
    with pytest.raises(ShapeContractError) as error:
        eagle3.engine.scheduler.step.proposer.idle()
    text = str(error.value)
    assert "DraftState.idle" in text
    assert "recurrent_hidden is 32" in text
    assert "64 is target_hidden" in text


def test_idle_state_with_another_dtype(eagle3: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = torch.zeros

    def zeros(*sizes: Any, **options: Any) -> Tensor:
        if options.get("dtype") is torch.int64:
            options["dtype"] = torch.int32
        return wrong(*sizes, **options)

    monkeypatch.setattr(carriers.torch, "zeros", zeros)
    with pytest.raises(ShapeContractError, match=r"SHP203 DraftState\.idle"):
        eagle3.engine.scheduler.step.proposer.idle()


def test_target_fed_without_num_aux(eagle3: LLM) -> None:
    """The last hidden state alone, where the head reads three layers."""
    eagle3.engine.scheduler.step.prefill.feed = lambda hidden: hidden.rows_TH
    text = caught(eagle3)
    assert "Prefill.run" in text
    assert "extend_hidden is 192 (num_aux*target_hidden = 3*64)" in text
    assert "64 is target_hidden" in text


def test_tree_as_wide_as_a_chain(eagle3: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """S+1 nodes where K > 1 makes it N."""
    loop = eagle3.engine.scheduler.step.proposer.loop
    width = eagle3.engine.dims["num_steps"] + 1

    def narrow(tree: DraftTree) -> DraftTree:
        return replace(
            tree,
            draft_tokens=tree.draft_tokens[:, :width],
            tree_mask=tree.tree_mask[:, :width, :width],
            positions=tree.positions[:, :width],
            next_child=tree.next_child[:, :width],
            next_sibling=tree.next_sibling[:, :width],
            slots=tree.slots[:, :width],
        )

    change(monkeypatch, loop, "_tree", narrow)
    text = caught(eagle3)
    assert "DraftDecode.run" in text
    assert "num_draft_tokens is 8" in text


def test_law_over_the_targets_vocabulary(full: None, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = tiny("eagle3", drafting="drawn", num_steps=3)
    extend = llm.engine.scheduler.step.proposer.extend
    vocab = llm.engine.dims["target_vocab"]

    def stretched(rows: Any) -> Any:
        padding = torch.full((len(rows.logits), vocab - rows.logits.shape[1]), -1e9)
        return replace(rows, logits=torch.cat((rows.logits, padding), dim=1))

    change(monkeypatch, extend, "forward", stretched)
    text = caught(llm)
    assert "DraftExtend.after_verify" in text
    assert "draft_vocab is 129" in text
    assert "258 is target_vocab" in text


def test_flat_accept_table(eagle3: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    verify = eagle3.engine.scheduler.step.verify
    change(monkeypatch, verify, "accept", lambda found: _bent(found, "accept_index", torch.flatten))
    text = caught(eagle3)
    assert "Verify.run" in text
    assert "accept_index" in text
    assert "accept_width" in text


def test_accept_lens_of_the_wrong_integer(eagle3: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    verify = eagle3.engine.scheduler.step.verify
    change(monkeypatch, verify, "accept", lambda found: _bent(found, "accept_lens", Tensor.long))
    text = caught(eagle3)
    assert "accept_lens" in text
    assert "int32" in text
    assert "int64" in text


def _bent(found: Any, name: str, bend: Callable[[Tensor], Tensor]) -> Any:
    return replace(found, **{name: bend(getattr(found, name))})


def test_pool_with_the_other_models_heads(eagle3: LLM) -> None:
    config = eagle3.engine.pair.target.config
    slots = eagle3.engine.dims["num_slots"]
    pool = KVPool(config, num_slots=slots, dtype=torch.float32, device="cpu")
    pool.as_target().check(eagle3.engine.dims)
    with pytest.raises(ShapeContractError) as error:
        pool.as_draft().check(eagle3.engine.dims)
    assert "draft_head_dim is 8" in str(error.value)


def test_first_draft_position_off_by_one(eagle3: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = eagle3.engine.scheduler.step.proposer.loop
    change(monkeypatch, loop, "_tree", lambda tree: replace(tree, positions=tree.positions + 1))
    text = caught(eagle3)
    assert "positions_follow_depth" in text
    assert "DraftDecode.run" in text


def test_slots_of_two_requests_overlap(eagle3: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = eagle3.engine.scheduler.step.proposer.loop
    change(
        monkeypatch,
        loop,
        "_tree",
        lambda tree: replace(tree, slots=tree.slots[:1].expand(tree.slots.shape)),
    )
    with pytest.raises(ShapeContractError, match="slots_are_distinct"):
        eagle3.generate(["hello", "world"], GREEDY)


def test_draft_ids_given_to_the_target(eagle3: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of range is what `full` can see of it: here ids beyond the target's vocabulary."""
    loop = eagle3.engine.scheduler.step.proposer.loop
    change(
        monkeypatch,
        loop,
        "_tree",
        lambda tree: replace(tree, draft_tokens=tree.draft_tokens + 258),
    )
    text = caught(eagle3)
    assert "draft_tokens" in text
    assert "target_vocab" in text


def test_select_index_one_row_too_far(eagle3: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    step = eagle3.engine.scheduler.step

    def shifted(found: Any) -> Any:
        extend, emitted = found
        return replace(extend, select_index=extend.select_index + 1), emitted

    change(monkeypatch, step.commit, "run", shifted)
    text = caught(eagle3)
    assert "select_index_is_the_last_accepted_row" in text


def test_path_that_the_target_did_not_choose(eagle3: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child is kept whose token is not what the target said at its parent."""
    verify = eagle3.engine.scheduler.step.verify

    def generous(found: Any) -> Any:
        index = found.accept_index.clone()
        index[:, 1] = 1
        lens = torch.full_like(found.accept_lens, 2)
        index[:, 2:] = -1
        return replace(found, accept_index=index, accept_lens=lens)

    change(monkeypatch, verify, "accept", generous)
    text = caught(eagle3)
    assert "path_follows_the_target" in text
    assert "Commit.run" in text


def test_law_made_by_hand(full: None) -> None:
    from engine.sampling import RootLaw

    with pytest.raises(EngineError, match="made by the sampler that drew the tokens"):
        RootLaw(probs=torch.ones(1, 129) / 129, seal=None)


def test_an_idle_rank_enters_every_forward(eagle3: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """Collectives match only if a rank without requests makes the same calls, with 0 rows."""
    rows: list[tuple[str, int]] = []
    for name, model in (("target", eagle3.engine.pair.target), ("draft", eagle3.engine.pair.draft)):
        assert model is not None
        model.register_forward_pre_hook(
            lambda _, args, name=name: rows.append((name, len(args[0])))
        )
    request = eagle3.engine.add([1, 2, 3], GREEDY)
    while not request.iterations:
        rows.clear()
        eagle3.engine.turn()
    # The last turn read the prompt and made one iteration; the iteration's calls come last.
    live = [name for name, _ in rows][-4:]
    eagle3.engine.scheduler.abort(request)
    rows.clear()
    eagle3.engine.scheduler.idle_turn()
    assert [name for name, _ in rows] == live == ["draft", "draft", "target", "draft"]
    assert all(count == 0 for _, count in rows)
