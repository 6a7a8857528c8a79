"""draft extend: the draft reads what the target has committed and names its first candidates.

T rows after prefill   B requests   N rows a request after verify   R recurrent width
Vd draft vocabulary
"""

from collections.abc import Callable
from typing import Annotated

import torch
from jaxtyping import Int64
from torch import Tensor

from engine.attention.base import AttentionBackend, Block
from engine.carriers import DraftState, ExtendRows, PrefillExtendInput, VerifyExtendInput
from engine.models.base import DraftModel, DraftRows
from engine.proposers.candidates import Candidates
from engine.sampling.batch import BatchSampling
from shapecheck import Dims, contract, ids, indexes


class VerifyExtendForward:
    """The part of draft extend that a graph replays: one draft forward of B*N rows."""

    def __init__(
        self, *, draft: DraftModel, attention: AttentionBackend, shift: int, width: int
    ) -> None:
        self.draft = draft
        self.attention = attention
        self.shift = shift
        self.width = width

    def __call__(self, batch: VerifyExtendInput) -> ExtendRows:
        """Logits and recurrent state of each request's last accepted row."""
        requests, width = len(batch.seq_lens), self.width
        positions_BN = batch.positions.view(requests, width)
        index_N = torch.arange(width, device=positions_BN.device)
        # A token's KV lies in the column of its position; padding goes to the pad slot.
        slots_BN = self.attention.table.columns_of(batch.req_rows_index, positions_BN)
        slots_BN = slots_BN.where(index_N < batch.accept_lens[:, None], 0)
        causal_NN = index_N[:, None] >= index_N
        plan = self.attention.plan_block(
            Block(
                req_rows_B=batch.req_rows_index,
                prefix_lens_B=batch.seq_lens + (1 - self.shift),
                slots_BR=slots_BN,
                tail_slots_BW=slots_BN,
                mask_BRW=causal_NN.expand(requests, width, width),
                max_prefix=batch.max_seq_len + (1 - self.shift),
            )
        )
        hidden = batch.hidden_states
        fed = None if hidden is None else self.draft.project(hidden)
        rows = self.draft(batch.input_ids, batch.positions, fed, plan)
        return _selected(self.draft, rows, batch.select_index)


class DraftExtend:
    """Two entries, one for each shape of input; both leave the draft's KV without a hole."""

    def __init__(
        self,
        *,
        dims: Dims,
        draft: DraftModel,
        attention: AttentionBackend,
        forward: Callable[[VerifyExtendInput], ExtendRows],
        candidates: Candidates,
    ) -> None:
        self.dims = dims
        self.draft = draft
        self.attention = attention
        self.forward = forward
        self.candidates = candidates

    @contract(phase="draft_extend")
    def after_prefill(self, batch: PrefillExtendInput, sampling: BatchSampling) -> DraftState:
        """The state of the requests whose prompt ends here; their roots stand at `seq_lens`."""
        plan = self.attention.plan_ragged(batch.work)
        hidden = batch.hidden_states
        fed = None if hidden is None else self.draft.project(hidden)
        rows = self.draft(batch.input_ids, batch.positions, fed, plan)
        selected = _selected(self.draft, rows, batch.select_index)
        bonus = batch.input_ids.index_select(0, batch.select_index)
        return self._state(selected, bonus, batch.seq_lens, sampling)

    @contract(phase="draft_extend")
    def after_verify(self, batch: VerifyExtendInput, sampling: BatchSampling) -> DraftState:
        """The next state of every live request; its root stands at L_b + A_b."""
        selected = self.forward(batch)
        bonus = batch.input_ids.index_select(0, batch.select_index)
        return self._state(selected, bonus, batch.seq_lens + batch.accept_lens, sampling)

    @contract(phase="draft_extend")
    def _state(
        self,
        rows: ExtendRows,
        bonus_B: Annotated[Int64[Tensor, "bs"], ids("target")],
        roots_B: Annotated[Int64[Tensor, "bs"], indexes("max_context")],
        sampling: BatchSampling,
    ) -> DraftState:
        first = self.candidates.root(rows.logits, roots_B, sampling)
        return DraftState(
            topk_p=first.scores,
            topk_index=first.tokens,
            hidden_states=rows.hidden_states,
            draft_probs=first.law,
            bonus_tokens=bonus_B,
        )


def _selected(draft: DraftModel, rows: DraftRows, select_index: Tensor) -> ExtendRows:
    recurrent = rows.recurrent_TR
    return ExtendRows(
        logits=draft.logits(rows.rows_TH.index_select(0, select_index)),
        hidden_states=None if recurrent is None else recurrent.index_select(0, select_index),
    )
