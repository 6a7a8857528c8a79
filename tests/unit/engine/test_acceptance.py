"""Acceptance is full where the draft is perfect: the test that sees a position off by one.

Outputs stay right whatever a draft reads; only how much is accepted tells that it read the wrong
position, slot, hidden state or token.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from engine.attention.base import AttentionPlan, Ragged
from engine.attention.sdpa import SdpaBackend
from engine.config import EngineConfig
from engine.kv.pool import KVPool
from engine.kv.table import RequestTable
from engine.llm import LLM, Output
from engine.models.base import DraftRows, Hidden
from engine.models.eagle import Eagle1
from engine.models.llama import CausalLM
from engine.models.pair import ModelPair, tiny_pair
from engine.sampling import SamplingParams

from .conftest import SHAPES, cyclic, drafted_by

PROMPTS = ["a", "hello world", "the quick brown fox"]


def params(width: int, **changes: object) -> SamplingParams:
    """So many tokens that no iteration is cut short: one by prefill, then whole widths."""
    values = {"max_tokens": 1 + 6 * width, "temperature": 0.0, "ignore_eos": True, **changes}
    return SamplingParams(**values)


def assert_full(outputs: list[Output], width: int) -> None:
    assert [output.metrics.accept_length for output in outputs] == [width] * len(outputs)
    assert all(output.metrics.iterations == 6 for output in outputs)


@pytest.mark.parametrize("graphs", [False, True], ids=["eager", "replayed"])
@pytest.mark.parametrize("chunk", [3, 512])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_self_draft_chain(steps: int, chunk: int, graphs: bool) -> None:
    llm = drafted_by("oracle", num_steps=steps, prefill_chunk=chunk, graphs=graphs)
    assert_full(llm.generate(PROMPTS, params(steps + 1)), steps + 1)
    # Once more, over a prefix whose KV another request has left.
    assert_full(llm.generate(PROMPTS, params(steps + 1)), steps + 1)


def test_self_draft_under_a_temperature() -> None:
    """Drawn from the target's own law, every candidate is accepted."""
    llm = drafted_by("oracle", num_steps=4, drafting="drawn")
    warm = params(5, temperature=0.9, top_k=20, seed=3)
    assert_full(llm.generate(PROMPTS, warm), 5)


@pytest.mark.parametrize("shape", ["tree", "whole tree", "one level"])
def test_self_draft_tree(shape: str) -> None:
    """With sharp laws the target's own path is among the best nodes of every tree."""
    llm = drafted_by("oracle", **SHAPES[shape])
    with torch.inference_mode():
        llm.engine.pair.target.head.weight_VH.mul_(40)
    width = llm.engine.dims["accept_width"]
    assert_full(llm.generate(PROMPTS, params(width)), width)


def test_upside_down_draft_is_never_accepted() -> None:
    llm = drafted_by("adversarial", num_steps=3)
    outputs = llm.generate(PROMPTS, params(4))
    assert all(output.metrics.accept_length == 1.0 for output in outputs)


def test_ngram_on_periodic_text() -> None:
    """After one period everything is known, and the full width is accepted every iteration."""
    config = EngineConfig.of(target="tiny", algorithm="ngram", num_steps=5)
    pair = tiny_pair(config)
    cyclic(pair.target, period=6)
    llm = LLM.of(config, pair)
    output = llm.generate([[66, 67, 68, 69, 70, 71, 66, 67]], params(6))[0]
    assert output.token_ids[:8] == (68, 69, 70, 71, 66, 67, 68, 69)
    assert_full([output], 6)


@pytest.mark.parametrize("graphs", [False, True], ids=["eager", "replayed"])
def test_ngram_without_a_guess_verifies_the_root_alone(graphs: bool) -> None:
    """Wide verification of tokens nobody believes in would cost time and give nothing."""
    config = EngineConfig.of(target="tiny", algorithm="ngram", num_steps=3, graphs=graphs)
    pair = tiny_pair(config)
    cyclic(pair.target, period=86)
    rows: list[int] = []
    pair.target.register_forward_pre_hook(lambda _, args: rows.append(len(args[0])))
    llm = LLM.of(config, pair)
    output = llm.generate([[5, 6, 7]], params(4, max_tokens=100))[0]
    assert rows[0] == 3
    # One by one until the cycle closes and the two newest tokens, 5 and 6, have been seen before.
    assert output.token_ids[:85] == (*range(8, 86), *range(7))
    assert rows[1:85] == [1] * 84
    assert set(rows[85:]) == {4}


@dataclass
class Fed:
    """One row that a draft read: the id, where it stood, and the hidden state beside it."""

    token: int
    position: int
    hidden: Tensor = field(repr=False)


class RecordingHead(Eagle1):
    """An EAGLE-1 head that notes every row its extend forwards are fed."""

    def __init__(self, head: Eagle1, target: CausalLM) -> None:
        super().__init__(head.config, target, length=len(head.rotary.cos_MF))
        self.load_state_dict(head.state_dict())
        self.projected = False
        self.fed: list[Fed] = []

    def project(self, hidden_TX: Tensor) -> Tensor:
        self.projected = True
        return super().project(hidden_TX)

    def forward(
        self, ids_T: Tensor, positions_T: Tensor, hidden_TR: Tensor | None, plan: AttentionPlan
    ) -> DraftRows:
        assert hidden_TR is not None
        if self.projected:  # extend, not a step of the draft loop
            for row in zip(ids_T.tolist(), positions_T.tolist(), hidden_TR.clone(), strict=True):
                self.fed.append(Fed(*row))
        self.projected = False
        return super().forward(ids_T, positions_T, hidden_TR, plan)


@torch.inference_mode()
def hidden_states(target: CausalLM, tokens: list[int]) -> Tensor:
    """(T, H) of a whole text in one forward."""
    table = RequestTable(rows=2, columns=len(tokens), device="cpu")
    row = table.take_row()
    table.write(row, 0, list(range(1, len(tokens) + 1)))
    pool = KVPool(target.config, num_slots=len(tokens) + 1, dtype=torch.float32, device="cpu")
    plan = SdpaBackend(pool, table).plan_ragged(
        Ragged(req_rows=(row,), prefix_lens=(0,), extend_lens=(len(tokens),))
    )
    hidden: Hidden = target(torch.tensor(tokens), torch.arange(len(tokens)), plan)
    return hidden.rows_TH


@pytest.mark.parametrize("chunk", [4, 512])
@pytest.mark.parametrize("shape", ["chain of 4", "tree"])
def test_an_eagle_head_reads_every_position_once(shape: str, chunk: int) -> None:
    """Position p: the target's hidden state of p beside token p+1, no position left out."""
    config = EngineConfig.of(target="tiny", algorithm="eagle", prefill_chunk=chunk, **SHAPES[shape])
    pair = tiny_pair(config)
    assert isinstance(pair.draft, Eagle1)
    head = RecordingHead(pair.draft, pair.target)
    llm = LLM.of(config, ModelPair(target=pair.target, draft=head, tokenizer=pair.tokenizer))
    output = llm.generate("hello world", params(4))[0]
    tokens = list(output.prompt_token_ids + output.token_ids)
    wanted = hidden_states(pair.target, tokens)
    # Padding rows stand at position 0 with id 0; the real row of position 0 came first.
    read: dict[int, Fed] = {}
    for fed in head.fed:
        if fed.position or 0 not in read:
            assert fed.position not in read, f"position {fed.position} was read twice"
            read[fed.position] = fed
    assert sorted(read) == list(range(max(read) + 1)), "a hole in the draft's KV"
    assert len(read) >= len(tokens) - 5
    for position in range(len(tokens) - 1):
        assert read[position].token == tokens[position + 1]
        torch.testing.assert_close(read[position].hidden, wanted[position], rtol=1e-3, atol=1e-4)


@torch.inference_mode()
@pytest.mark.parametrize("algorithm", ["standalone", "eagle", "eagle3"])
@pytest.mark.parametrize("shape", ["chain of 4", "tree"])
def test_committed_kv_is_a_recompute(algorithm: str, shape: str) -> None:
    """After some iterations the slots of a request hold what one prefill of its text writes."""
    config = EngineConfig.of(target="tiny", algorithm=algorithm, **SHAPES[shape])
    llm = LLM.of(config, tiny_pair(config))
    text = llm.tokenizer.encode("hello world")
    request = llm.engine.add(text, SamplingParams(max_tokens=90, temperature=0.0))
    for _ in range(12):
        llm.engine.turn()
    assert request.finish is None
    length = request.computed
    slots = llm.engine.table.read(request.row, 0, length)
    assert len(set(slots)) == length
    again = LLM.of(config, llm.engine.pair)
    twin = again.engine.add(request.tokens, SamplingParams(max_tokens=90, temperature=0.0))
    again.engine.turn()
    fresh = again.engine.table.read(twin.row, 0, length)
    pools = [(llm.engine.target_pool, again.engine.target_pool, length)]
    assert llm.engine.draft_pool is not None
    assert again.engine.draft_pool is not None
    pools.append((llm.engine.draft_pool, again.engine.draft_pool, length))
    for mine, theirs, count in pools:
        for layer in range(len(mine.keys_ZCE)):
            for left, right in (
                (mine.keys_ZCE[layer], theirs.keys_ZCE[layer]),
                (mine.values_ZCE[layer], theirs.values_ZCE[layer]),
            ):
                torch.testing.assert_close(
                    left[slots[:count]], right[fresh[:count]], rtol=1e-3, atol=1e-4
                )
