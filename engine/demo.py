"""The ranks that `shapecheck demo` shows, each a process so that SHAPECHECK holds from its import.

`python -m engine.demo mistaken` serves a few prompts with an idle placeholder of the wrong width;
`python -m engine.demo healthy` serves them without the mistake and prints its figures as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, replace

import torch

from engine.carriers import DraftState
from engine.config import EngineConfig
from engine.llm import LLM
from engine.proposers.eagle import Eagle3Proposer
from engine.sampling import SamplingParams
from engine.scheduler.request import Request
from shapecheck import contract

_PROMPTS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
_PARAMS = SamplingParams(max_tokens=40, temperature=0.0, ignore_eos=True)


class MistakenProposer(Eagle3Proposer):
    """EAGLE-3 with one width taken from the wrong model, as a real engine once had it."""

    @contract(phase="idle")
    def idle(self) -> DraftState:
        """The mistake: nothing here looks wrong, and nothing fails until requests arrive."""
        # shapecheck: ignore[SHP201] meant: it is what the demo shows
        hidden = torch.zeros(0, self.dims["target_hidden"], device=self.device)
        return replace(super().idle(), hidden_states=hidden)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the healthy rank did; seconds are those of its quickest iteration of all requests."""

    requests: int
    same_tokens: bool
    iteration_seconds: float
    contract_seconds: float


def serve(llm: LLM) -> tuple[list[Request], float]:
    """The prompts come in at a rank that was idle until then; its quickest iteration."""
    requests = [llm.engine.add(llm.tokenizer.encode(text), _PARAMS) for text in _PROMPTS]
    llm.engine.turn()
    # The quickest is the one that nothing else on the machine disturbed.
    quickest = float("inf")
    while llm.engine.scheduler.unfinished:
        start = time.perf_counter()
        llm.engine.turn()
        quickest = min(quickest, time.perf_counter() - start)
    return requests, quickest


def healthy() -> Figures:
    """The figures of the healthy rank, its tokens held against those of plain decoding."""
    llm = LLM("tiny", algorithm="eagle3")
    requests, quickest = serve(llm)
    plain, _ = serve(LLM("tiny", algorithm="none"))
    return Figures(
        requests=len(requests),
        same_tokens=[one.output for one in requests] == [one.output for one in plain],
        iteration_seconds=quickest,
        contract_seconds=llm.contract_seconds(),
    )


def mistaken() -> None:
    """Serve with the mistake: the rank does not survive the arrival of its prompts."""
    config = EngineConfig.of(target="tiny", algorithm="eagle3")
    serve(LLM.of(config, proposer=MistakenProposer))


def main(kind: str) -> None:
    """One rank, from its first import to its last iteration."""
    torch.set_num_threads(1)
    if kind == "mistaken":
        mistaken()
    else:
        json.dump(asdict(healthy()), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
