"""A new proposer is one file and one line of the registry: everything else reads it there."""

from __future__ import annotations

import click
import pytest

import engine.cli
from engine.carriers import BatchRows, DraftState, VerifyInput
from engine.config import EngineConfig
from engine.errors import EngineError
from engine.llm import LLM
from engine.proposers.base import Proposer
from engine.proposers.chain import ChainProposer
from engine.proposers.eagle import Eagle3Proposer
from engine.proposers.registry import PROPOSERS
from engine.sampling import SamplingParams
from engine.sampling.batch import BatchSampling
from shapecheck import contract

GREEDY = SamplingParams(max_tokens=12, temperature=0.0, ignore_eos=True)


class AgainProposer(ChainProposer):
    """The newest token once more, as often as there is room."""

    @contract(phase="draft_decode")
    def propose(self, state: DraftState, rows: BatchRows, sampling: BatchSampling) -> VerifyInput:
        width = self.dims["num_draft_tokens"]
        return self.chain(state.bonus_tokens[:, None].repeat(1, width), rows)


class OtherHeadProposer(Eagle3Proposer):
    """An EAGLE-3 head under a name of its own."""


@pytest.mark.parametrize("proposer", [AgainProposer, OtherHeadProposer])
def test_one_line_registers_a_proposer(
    proposer: type[Proposer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROPOSERS, "again", proposer)
    config = EngineConfig.of(target="tiny", algorithm="again", num_steps=3)
    assert config.models == proposer.models
    llm = LLM.of(config)
    assert type(llm.engine.scheduler.step.proposer) is proposer
    assert (llm.engine.draft_pool is None) == (proposer.models == "ngram")
    found = LLM("tiny", algorithm="again").generate("hello", GREEDY)[0]
    assert found.token_ids == LLM("tiny", algorithm="none").generate("hello", GREEDY)[0].token_ids
    with pytest.raises(EngineError, match="did you mean 'again'"):
        EngineConfig.of(algorithm="agian")


def test_the_command_line_offers_the_registered_names() -> None:
    for name in ("run", "bench"):
        command = engine.cli.commands.commands[name]
        (option,) = [one for one in command.params if one.name == "algorithm"]
        assert isinstance(option.type, click.Choice)
        assert list(option.type.choices) == list(PROPOSERS)
