"""What proposers with a draft model share: draft decode and draft extend."""

from __future__ import annotations

from dataclasses import replace

from engine.carriers import (
    BatchRows,
    DraftState,
    PrefillExtendInput,
    VerifyExtendInput,
    VerifyInput,
)
from engine.graphs.buffers import VerifyExtendBuffers
from engine.models.base import DraftModel
from engine.phases.accept import AcceptChosen, AcceptDrawn
from engine.phases.draft_decode import DraftDecode
from engine.phases.draft_extend import DraftExtend, VerifyExtendForward
from engine.phases.draft_loop import ChosenLoop, DraftLoop, DrawnLoop, StepForward
from engine.proposers.base import Parts, Proposer
from engine.proposers.candidates import Chosen, Drawn
from engine.sampling import HotVocab, RootLaw
from engine.sampling.batch import BatchSampling
from shapecheck import contract


class ModelProposer(Proposer):
    """A draft model in a loop; subclasses say what it is fed and where its ids stand."""

    models = "standalone"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        assert parts.draft is not None, "this algorithm needs a draft model"
        assert parts.attention is not None, "this algorithm needs a pool for its draft"
        drawn = parts.config.drafting == "drawn"
        topk = parts.dims["topk"]
        vocab = self.vocab_of(parts.draft)
        self.candidates = (Drawn if drawn else Chosen)(topk, parts.ops)
        self.accept = (
            AcceptDrawn(parts.dims, vocab, parts.ops)
            if drawn
            else AcceptChosen(parts.dims, parts.ops)
        )
        step = StepForward(draft=parts.draft, attention=parts.attention, shift=self.shift)
        self.loop = DraftLoop(
            dims=parts.dims,
            table=parts.table,
            forward=step,
            shift=self.shift,
            vocab=vocab,
            candidates=self.candidates,
            ops=parts.ops,
        )
        self.grow = (DrawnLoop if drawn else ChosenLoop).of(self.loop, parts.graphs)
        self.decode = DraftDecode(dims=parts.dims, grow=self.grow)
        self.extend = DraftExtend(
            dims=parts.dims,
            draft=parts.draft,
            attention=parts.attention,
            forward=parts.graphs.wrap(
                VerifyExtendForward(
                    draft=parts.draft,
                    attention=parts.attention,
                    shift=self.shift,
                    width=parts.dims["num_draft_tokens"],
                ),
                VerifyExtendBuffers,
            ),
            candidates=self.candidates,
        )

    @contract
    def vocab_of(self, draft: DraftModel) -> HotVocab:
        """How draft ids become target ids: as they are unless overridden."""
        return HotVocab.whole(self.dims["target_vocab"], device=self.device)

    @property
    def window(self) -> int:
        """The verify tree, or the draft's own slots if those are more; ids may stand one ahead."""
        drafted = (self.dims["num_steps"] - 1) * self.dims["topk"]
        return 1 - self.shift + max(self.dims["num_draft_tokens"], drafted)

    @contract(phase="idle")
    def idle(self) -> DraftState:
        """The state of no requests; where candidates are drawn it has the law of no draws."""
        state = DraftState.idle(self.dims, self.device)
        if not isinstance(self.candidates, Drawn):
            return state
        law = RootLaw.undrawn(0, self.dims["draft_vocab"], device=self.device)
        return replace(state, draft_probs=law)

    def after_prefill(self, batch: PrefillExtendInput, sampling: BatchSampling) -> DraftState:
        return self.extend.after_prefill(batch, sampling)

    def propose(self, state: DraftState, rows: BatchRows, sampling: BatchSampling) -> VerifyInput:
        return self.decode.run(state, rows, sampling)

    def after_verify(self, batch: VerifyExtendInput, sampling: BatchSampling) -> DraftState:
        return self.extend.after_verify(batch, sampling)
