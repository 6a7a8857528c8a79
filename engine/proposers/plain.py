"""Plain decoding: the tree is its root, so every iteration gives one token."""

from __future__ import annotations

from engine.carriers import BatchRows, DraftState, VerifyInput
from engine.proposers.chain import ChainProposer
from engine.sampling.batch import BatchSampling
from shapecheck import contract


class PlainProposer(ChainProposer):
    """algorithm="none"."""

    models = "none"
    runs_ahead = True

    @property
    def width(self) -> int:
        return 1

    @contract(phase="draft_decode")
    def propose(self, state: DraftState, rows: BatchRows, sampling: BatchSampling) -> VerifyInput:
        return self.chain(state.bonus_tokens[:, None], rows)
