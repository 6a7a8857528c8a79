"""The Triton backend: split-KV attention for blocks, one causal kernel for prefill; CUDA.

B requests   T rows of the forward   R query rows per request   W slots beyond the prefix
Q query heads   C key/value heads   E head width   S splits
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.attention.base import AttentionBackend, AttentionPlan, Block, EmptyPlan, Ragged
from engine.errors import EngineError
from engine.kernels.attention_cuts import RingCut, ring_cut, tile_rows
from engine.kernels.launch import overlaps
from engine.kernels.mask_words import mask_words
from engine.kernels.paged_attention import INVARIANT_ROWS, paged_attention
from engine.kernels.prefill_attention import prefill_attention
from engine.kv.pool import KVPool
from engine.kv.table import RequestTable
from engine.transfer import to_device
from shapecheck import contract

WIDEST_TAIL = 64
"""A row's tail mask is one word."""

SHORT_SPLIT = 64
"""Columns of a split when few programs would run otherwise."""

WHOLE = 2048
"""Columns up to which many requests are not split at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedPlan(AttentionPlan):
    """A fused forward writes its keys and values to `slots_T` itself, and only reads here."""

    pool: KVPool
    table_PM: Tensor
    slots_T: Tensor

    def attend(self, layer: int, q_TQE: Tensor, k_TCE: Tensor, v_TCE: Tensor) -> Tensor:
        self.pool.store(layer, self.slots_T, k_TCE, v_TCE)
        return self.read(layer, q_TQE.contiguous())

    @abstractmethod
    def read(self, layer: int, q_TQE: Tensor, *, chained: bool = False) -> Tensor:
        """Attention (T, Q, E) over what is in the pool, this forward's keys and values included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlan(PagedPlan):
    """R rows of each request."""

    work: Block
    word_T: Tensor
    split: int
    invariant: bool

    def parts(self, tokens: int) -> Iterator[tuple[slice, BlockPlan]]:
        """Plans of whole requests, each of at most so many rows (one request at least)."""
        requests, rows = self.work.slots_BR.shape
        step = max(1, tokens // rows)
        for first in range(0, requests, step):
            some, taken = slice(first, first + step), slice(first * rows, (first + step) * rows)
            work = replace(
                self.work,
                req_rows_B=self.work.req_rows_B[some],
                prefix_lens_B=self.work.prefix_lens_B[some],
                slots_BR=self.work.slots_BR[some],
                tail_slots_BW=self.work.tail_slots_BW[some],
                mask_BRW=self.work.mask_BRW[some],
            )
            part = replace(self, work=work, slots_T=self.slots_T[taken], word_T=self.word_T[taken])
            yield taken, part

    def read(self, layer: int, q_TQE: Tensor, *, chained: bool = False) -> Tensor:
        tokens, heads, width = q_TQE.shape
        longest = self.work.max_prefix + self.work.tail_slots_BW.shape[1]
        ring = self._ring(q_TQE)
        split = self.split if ring is None else ring.columns or self.split
        splits = max(1, -(-longest // split))
        device = q_TQE.device
        return paged_attention(
            q_TQE,
            self.pool.keys_ZCE[layer],
            self.pool.values_ZCE[layer],
            table_PM=self.table_PM,
            row_B=self.work.req_rows_B,
            prefix_B=self.work.prefix_lens_B,
            tail_BW=self.work.tail_slots_BW,
            word_T=self.word_T,
            split=split,
            part_TQSE=torch.empty(tokens, heads, splits, width, device=device),
            weight_TQS=torch.empty(tokens, heads, splits, device=device),
            out_TQE=torch.empty_like(q_TQE),
            ring=ring,
            invariant=self.invariant,
            chained=chained,
        )

    def _ring(self, q_TQE: Tensor) -> RingCut | None:
        """The cut of the ring, where this card has one and it is the faster kernel."""
        if self.invariant or q_TQE.itemsize != 2 or not overlaps():
            return None
        requests, rows = self.work.slots_BR.shape
        kv_heads = self.pool.keys_ZCE[0].shape[1]
        tile = tile_rows(rows * (q_TQE.shape[1] // kv_heads))
        return ring_cut(requests * kv_heads, tile, width=q_TQE.shape[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class _RaggedPlan(PagedPlan):
    row_B: Tensor
    prefix_B: Tensor
    start_B1: Tensor
    longest: int

    def read(self, layer: int, q_TQE: Tensor, *, chained: bool = False) -> Tensor:
        return prefill_attention(
            q_TQE,
            self.pool.keys_ZCE[layer],
            self.pool.values_ZCE[layer],
            table_PM=self.table_PM,
            row_B=self.row_B,
            prefix_B=self.prefix_B,
            start_B1=self.start_B1,
            longest=self.longest,
        )


class TritonBackend(AttentionBackend):
    """Attention over the paged pool without gathering it.

    Many requests fill the card by themselves and get long splits. `invariant` fixes their length
    and the tile, so that a row's sum is the same in every batch and at every width.
    """

    def __init__(self, pool: KVPool, table: RequestTable, *, invariant: bool = False) -> None:
        super().__init__(pool, table)
        self.invariant = invariant

    def plan_ragged(self, work: Ragged) -> AttentionPlan:
        if not sum(work.extend_lens):
            return EmptyPlan()
        table_PM = self.table.slots_PM
        written = [
            table_PM[row, prefix : prefix + extend]
            for row, prefix, extend in zip(
                work.req_rows, work.prefix_lens, work.extend_lens, strict=True
            )
        ]
        lengths = torch.tensor([0, *work.extend_lens], dtype=torch.int64)
        rows = torch.tensor([work.req_rows, work.prefix_lens], dtype=torch.int64)
        row_B, prefix_B = to_device(rows, table_PM.device)
        return _RaggedPlan(
            pool=self.pool,
            table_PM=table_PM,
            slots_T=torch.cat(written),
            row_B=row_B,
            prefix_B=prefix_B,
            start_B1=to_device(lengths.cumsum(0), table_PM.device),
            longest=max(work.extend_lens),
        )

    @contract
    def plan_block(self, work: Block) -> AttentionPlan:
        requests, tail = work.tail_slots_BW.shape
        if not requests:
            return EmptyPlan()
        if self.invariant and work.slots_BR.shape[1] > INVARIANT_ROWS:
            raise EngineError(
                f"{work.slots_BR.shape[1]} rows of a request in one forward, and batch_invariant "
                f"has a tile of {INVARIANT_ROWS}; lower num_draft_tokens or topk"
            )
        if tail > WIDEST_TAIL:
            raise EngineError(
                f"{tail} tokens of a request are in flight and the Triton attention holds "
                f"{WIDEST_TAIL}; lower num_steps, topk or num_draft_tokens"
            )
        _, kv_heads, width = self.pool.keys_ZCE[0].shape
        rows = work.slots_BR.shape[1]
        # The kernels read every tensor without gaps; a step's slots are columns of its tail.
        work = replace(
            work,
            req_rows_B=work.req_rows_B.contiguous(),
            prefix_lens_B=work.prefix_lens_B.contiguous(),
            tail_slots_BW=work.tail_slots_BW.contiguous(),
        )
        return BlockPlan(
            pool=self.pool,
            work=work,
            table_PM=self.table.slots_PM,
            slots_T=work.slots_BR.reshape(-1).contiguous(),
            word_T=mask_words(work.mask_BRW),
            split=SHORT_SPLIT
            if self.invariant
            else split_columns(
                requests * kv_heads, rows, width=width, longest=work.max_prefix + tail
            ),
            invariant=self.invariant,
        )


def split_columns(programs: int, rows: int, *, width: int, longest: int) -> int:
    """Columns of a split when so many programs run before any splitting, with so many rows of a
    request each and heads of this width; what was fastest on one H200 with 1070 columns.
    """
    whole = -(-longest // SHORT_SPLIT) * SHORT_SPLIT
    if programs <= 32:
        return SHORT_SPLIT if rows <= 8 or width <= 64 else 2 * SHORT_SPLIT
    if programs <= 128:
        if rows <= 4 or width <= 64:
            return 192 if rows <= 4 else 256
        return 384 if rows <= 8 or longest > WHOLE else whole
    # Many requests fill the card whole; of long ones some may be short, and the rest then splits.
    return 1024 if longest > WHOLE else whole
