"""EAGLE-1 and EAGLE-3: a head drafts from the target's hidden states, ids one position ahead."""

from __future__ import annotations

from torch import Tensor

from engine.models.base import DraftModel, Hidden
from engine.models.eagle import Eagle3
from engine.proposers.model import ModelProposer
from engine.sampling import HotVocab
from shapecheck import contract


class EagleProposer(ModelProposer):
    """EAGLE-1 is fed the target's last hidden states, after the final norm."""

    models = "eagle"
    shift = 1

    @staticmethod
    def feed(hidden: Hidden) -> Tensor | None:
        return hidden.rows_TH


class Eagle3Proposer(ModelProposer):
    """EAGLE-3 is fed the inputs of several layers, and scores a vocabulary of its own."""

    models = "eagle3"
    shift = 1

    @staticmethod
    def feed(hidden: Hidden) -> Tensor | None:
        assert hidden.aux_TX is not None, "the target was built without aux layers"
        return hidden.aux_TX

    @contract
    def vocab_of(self, draft: DraftModel) -> HotVocab:
        assert isinstance(draft, Eagle3), "EAGLE-3 runs an EAGLE-3 head"
        return HotVocab.from_offsets(draft.d2t, target_vocab=self.dims["target_vocab"])
