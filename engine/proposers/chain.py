"""What proposers without a draft model share: a chain of known tokens below the bonus token.

B requests   N verify width, root included
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.carriers import (
    BatchRows,
    DraftState,
    PrefillExtendInput,
    VerifyExtendInput,
    VerifyInput,
)
from engine.phases.accept import AcceptChosen
from engine.proposers.base import Parts, Proposer
from engine.sampling.batch import BatchSampling
from engine.tree import chain_structure
from shapecheck import contract


class ChainProposer(Proposer):
    """Keeps no state but the bonus token."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.accept = AcceptChosen(parts.dims, parts.ops)
        # Every request has the same chain, from position 0 until its length is added.
        self.links = chain_structure(
            torch.zeros(1, dtype=torch.int64, device=self.device),
            num_draft_tokens=self.width,
        )

    @property
    def width(self) -> int:
        """Nodes of the chain, the bonus token included."""
        return self.dims["num_draft_tokens"]

    @contract(phase="draft_extend")
    def after_prefill(self, batch: PrefillExtendInput, sampling: BatchSampling) -> DraftState:
        return self._state(batch.input_ids.index_select(0, batch.select_index))

    @contract(phase="draft_extend")
    def after_verify(self, batch: VerifyExtendInput, sampling: BatchSampling) -> DraftState:
        return self._state(batch.input_ids.index_select(0, batch.select_index))

    def chain(self, tokens_BN: Tensor, rows: BatchRows) -> VerifyInput:
        """The tree that is one path through `tokens`, the bonus token first."""
        requests, width = tokens_BN.shape
        positions_BN = rows.seq_lens[:, None] + self.links.positions
        return VerifyInput(
            draft_tokens=tokens_BN,
            tree_mask=self.links.tree_mask.expand(requests, width, width),
            positions=positions_BN,
            next_child=self.links.next_child.expand(requests, width),
            next_sibling=self.links.next_sibling.expand(requests, width),
            draft_probs=None,
            seq_lens=rows.seq_lens,
            slots=self.table.columns_of(rows.req_rows_index, positions_BN),
            req_rows_index=rows.req_rows_index,
            max_seq_len=rows.max_seq_len,
        )

    def _state(self, bonus_B: Tensor) -> DraftState:
        requests, topk = len(bonus_B), self.dims["topk"]
        return DraftState(
            topk_p=torch.zeros(requests, topk, device=self.device),
            topk_index=torch.zeros(requests, topk, dtype=torch.int64, device=self.device),
            hidden_states=None,
            draft_probs=None,
            bonus_tokens=bonus_B,
        )
