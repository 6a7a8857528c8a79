"""An iteration never asks the device: it runs on tensors that have no values to read."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch

from engine.carriers import BatchRows
from engine.llm import LLM
from engine.proposers.chain import ChainProposer
from engine.proposers.model import ModelProposer
from engine.sampling import BatchControls, SamplingParams
from engine.sampling.batch import BatchSampling
from engine.step import Live

from .conftest import SHAPES, tiny

META = torch.device("meta")
REQUESTS = 3


def tensors_of(carrier: object) -> dict[str, torch.Tensor]:
    """The tensors of a dataclass by the name of their field."""
    return {item.name: getattr(carrier, item.name) for item in fields(carrier)}  # type: ignore[arg-type]


def without_values(llm: LLM) -> LLM:
    """The engine with every tensor moved to the meta device, where reading a value raises."""
    engine = llm.engine
    engine.pair.target.to(META)
    engine.table.slots_PM = engine.table.slots_PM.to(META)
    for pool in filter(None, (engine.target_pool, engine.draft_pool)):
        pool.keys_ZCE[:] = [tensor.to(META) for tensor in pool.keys_ZCE]
        pool.values_ZCE[:] = [tensor.to(META) for tensor in pool.values_ZCE]
    proposer = engine.scheduler.step.proposer
    proposer.device = META
    if isinstance(proposer, ChainProposer):
        links = tensors_of(proposer.links)
        proposer.links = replace(
            proposer.links, **{name: tensor.to(META) for name, tensor in links.items()}
        )
    if isinstance(proposer, ModelProposer):
        assert engine.pair.draft is not None
        engine.pair.draft.to(META)
        vocab = proposer.loop.vocab
        vocab = replace(vocab, hot=vocab.hot.to(META), cold=vocab.cold.to(META))
        proposer.loop.vocab = vocab
        if hasattr(proposer.accept, "vocab"):
            proposer.accept.vocab = vocab
    return llm


def live_rows(llm: LLM, params: SamplingParams) -> Live:
    """Some running requests whose state the engine itself has made."""
    proposer = llm.engine.scheduler.step.proposer
    none = torch.zeros(REQUESTS, dtype=torch.int64, device=META)
    state = proposer.idle()
    width = {"topk_p": torch.empty(REQUESTS, llm.engine.dims["topk"], device=META)}
    width["topk_index"] = width["topk_p"].long()
    if state.hidden_states is not None:
        hidden = state.hidden_states.shape[1]
        width["hidden_states"] = torch.empty(REQUESTS, hidden, device=META)
    if state.draft_probs is not None:
        law = torch.empty(REQUESTS, llm.engine.dims["draft_vocab"], device=META)
        width["draft_probs"] = state.draft_probs.mapped(lambda _: law)
    controls = BatchControls.of([params] * REQUESTS, range(REQUESTS), device=META)
    return Live(
        rows=BatchRows(req_rows_index=none, seq_lens=none, max_seq_len=9, rows_on_host=(1, 2, 3)),
        state=replace(state, bonus_tokens=none, **width),
        sampling=BatchSampling(controls=controls, counts=None),
    )


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize(
    ("algorithm", "shape", "drafting"),
    [
        ("none", "chain of 4", "best"),
        ("standalone", "chain of 4", "best"),
        ("eagle", "tree", "best"),
        ("eagle3", "tree", "best"),
        ("eagle3", "chain of 4", "drawn"),
        ("eagle3", "tree", "drawn"),
    ],
)
@torch.inference_mode()
def test_an_iteration_reads_no_value(
    algorithm: str, shape: str, drafting: str, temperature: float
) -> None:
    settings = {} if algorithm == "none" else {"drafting": drafting, **SHAPES[shape]}
    llm = without_values(tiny(algorithm, **settings))
    params = SamplingParams(temperature=temperature, top_p=0.9, seed=1)
    tokens, _ = llm.engine.scheduler.step.iterate(live_rows(llm, params))
    with pytest.raises(RuntimeError, match="meta"):
        tokens.tolist()


def test_reading_a_value_would_be_seen() -> None:
    with pytest.raises(RuntimeError, match="meta"):
        torch.zeros(2, device=META).tolist()
