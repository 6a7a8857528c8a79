"""Static buffers: one class for each forward that a graph replays, `padded_bs` rows.

Rows behind the live ones are padding: row 0 of the table, slot 0, position 0, length 0. The widths
of all later axes are those of the live carrier, from the same Dims.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import torch
from jaxtyping import Bool, Float, Float32, Int32, Int64
from torch import Tensor

from engine.carriers import DraftRoots, DrawnRoots, VerifyExtendInput, VerifyRows
from engine.sampling import BatchControls, RootLaw, SamplingParams
from shapecheck import Dims, contract, dtype, graph_buffers, ids, indexes


@graph_buffers(live=VerifyRows)
@dataclass(slots=True, kw_only=True)
class VerifyBuffers:
    """What the verify graph reads."""

    draft_tokens: Annotated[Int64[Tensor, "padded_bs num_draft_tokens"], ids("target")]
    tree_mask: Bool[Tensor, "padded_bs num_draft_tokens num_draft_tokens"]
    positions: Annotated[Int64[Tensor, "padded_bs num_draft_tokens"], indexes("max_context")]
    seq_lens: Annotated[Int64[Tensor, "padded_bs"], indexes("max_context")]
    slots: Annotated[Int64[Tensor, "padded_bs num_draft_tokens"], indexes("num_slots")]
    req_rows_index: Annotated[Int64[Tensor, "padded_bs"], indexes("req_rows")]
    max_seq_len: int

    @classmethod
    @contract(phase="verify")
    def allocate(cls, dims: Dims, rows: int, max_seq_len: int, device: torch.device) -> Self:
        """Buffers of this many rows, all of them padding."""
        width = dims["num_draft_tokens"]
        return cls(
            draft_tokens=_ids(rows, width, device=device),
            # Padding sees itself: a row that sees nothing has no softmax.
            tree_mask=torch.eye(width, dtype=torch.bool, device=device).repeat(rows, 1, 1),
            positions=_ids(rows, width, device=device),
            seq_lens=_ids(rows, device=device),
            slots=_ids(rows, width, device=device),
            req_rows_index=_ids(rows, device=device),
            max_seq_len=max_seq_len,
        )

    def pad(self, live: int) -> None:
        """Rows from `live` on are padding."""
        for tensor in (self.draft_tokens, self.positions, self.seq_lens):
            tensor[live:].zero_()
        self.slots[live:].zero_()
        self.req_rows_index[live:].zero_()
        width = self.tree_mask.shape[1]
        self.tree_mask[live:] = torch.eye(width, dtype=torch.bool, device=self.tree_mask.device)


@graph_buffers(live=DraftRoots)
@dataclass(slots=True, kw_only=True)
class DraftRootsBuffers:
    """What the draft decode graph reads when it holds the whole loop."""

    topk_p: Float32[Tensor, "padded_bs topk"]
    topk_index: Annotated[Int64[Tensor, "padded_bs topk"], ids("draft")]
    hidden_states: Annotated[Float[Tensor, "padded_bs recurrent_hidden"], dtype("draft")] | None
    bonus_tokens: Annotated[Int64[Tensor, "padded_bs"], ids("target")]
    seq_lens: Annotated[Int64[Tensor, "padded_bs"], indexes("max_context")]
    req_rows_index: Annotated[Int64[Tensor, "padded_bs"], indexes("req_rows")]
    max_seq_len: int

    @classmethod
    @contract(phase="draft_decode")
    def allocate(cls, dims: Dims, rows: int, max_seq_len: int, device: torch.device) -> Self:
        """Buffers of this many rows, all of them padding."""
        topk = dims["topk"]
        return cls(
            topk_p=torch.zeros(rows, topk, device=device),
            topk_index=_ids(rows, topk, device=device),
            hidden_states=_hidden(rows, dims.get("recurrent_hidden"), dims.draft_dtype, device),
            bonus_tokens=_ids(rows, device=device),
            seq_lens=_ids(rows, device=device),
            req_rows_index=_ids(rows, device=device),
            max_seq_len=max_seq_len,
        )

    def pad(self, live: int) -> None:
        """Rows from `live` on are padding."""
        for tensor in (self.topk_p, self.topk_index, self.bonus_tokens):
            tensor[live:].zero_()
        self.seq_lens[live:].zero_()
        self.req_rows_index[live:].zero_()
        if self.hidden_states is not None:
            self.hidden_states[live:].zero_()


@graph_buffers(live=DrawnRoots)
@dataclass(slots=True, kw_only=True)
class DrawnRootsBuffers:
    """The same where candidates are drawn: also the law of the first ones, and what each request
    asks of the next.

    The flags of a graph's controls are those of its padding: `asked` for as much as it can do.
    """

    roots: DraftRootsBuffers
    law: RootLaw
    controls: BatchControls
    asked: ClassVar[SamplingParams] = SamplingParams(temperature=1.0)

    @classmethod
    @contract(phase="draft_decode")
    def allocate(cls, dims: Dims, rows: int, max_seq_len: int, device: torch.device) -> Self:
        """Buffers of this many rows, all of them padding."""
        return cls(
            roots=DraftRootsBuffers.allocate(dims, rows, max_seq_len, device),
            law=RootLaw.undrawn(rows, dims["draft_vocab"], device=device),
            controls=BatchControls.of([cls.asked] * rows, [0] * rows, device=device),
        )

    def pad(self, live: int) -> None:
        """Rows from `live` on are padding; what they draw, from whichever law, nobody reads."""
        self.roots.pad(live)


@graph_buffers(live=DrawnRoots)
@dataclass(slots=True, kw_only=True)
class TruncatingRootsBuffers(DrawnRootsBuffers):
    """For batches in which some request has a top-k, top-p or min-p, which costs passes over every
    law.
    """

    asked: ClassVar[SamplingParams] = SamplingParams(temperature=1.0, top_p=0.5)


@graph_buffers(live=VerifyExtendInput)
@dataclass(slots=True, kw_only=True)
class VerifyExtendBuffers:
    """What the draft extend graph reads: TARGET-derived width, N rows a request."""

    hidden_states: (
        Annotated[Float[Tensor, "padded_bs*num_draft_tokens extend_hidden"], dtype("target")] | None
    )
    input_ids: Annotated[Int64[Tensor, "padded_bs*num_draft_tokens"], ids("target")]
    positions: Annotated[Int64[Tensor, "padded_bs*num_draft_tokens"], indexes("max_context")]
    accept_lens: Int32[Tensor, "padded_bs"]
    seq_lens: Annotated[Int64[Tensor, "padded_bs"], indexes("max_context")]
    req_rows_index: Annotated[Int64[Tensor, "padded_bs"], indexes("req_rows")]
    select_index: Annotated[Int64[Tensor, "padded_bs"], indexes("padded_bs*num_draft_tokens")]
    max_seq_len: int

    @classmethod
    @contract(phase="draft_extend")
    def allocate(cls, dims: Dims, rows: int, max_seq_len: int, device: torch.device) -> Self:
        """Buffers of this many rows, all of them padding."""
        width = dims["num_draft_tokens"]
        return cls(
            hidden_states=_hidden(
                rows * width, dims.get("extend_hidden"), dims.target_dtype, device
            ),
            input_ids=_ids(rows * width, device=device),
            positions=_ids(rows * width, device=device),
            accept_lens=torch.zeros(rows, dtype=torch.int32, device=device),
            seq_lens=_ids(rows, device=device),
            req_rows_index=_ids(rows, device=device),
            # Some row of its own: what is selected for padding is never read.
            select_index=width * torch.arange(rows, device=device),
            max_seq_len=max_seq_len,
        )

    def pad(self, live: int) -> None:
        """Rows from `live` on are padding."""
        rows = len(self.seq_lens)
        width = len(self.input_ids) // rows
        self.input_ids[live * width :].zero_()
        self.positions[live * width :].zero_()
        for tensor in (self.accept_lens, self.seq_lens, self.req_rows_index):
            tensor[live:].zero_()
        self.select_index[live:] = width * torch.arange(live, rows, device=self.input_ids.device)
        if self.hidden_states is not None:
            self.hidden_states[live * width :].zero_()


def _ids(*sizes: int, device: torch.device) -> Tensor:
    return torch.zeros(*sizes, dtype=torch.int64, device=device)


def _hidden(
    rows: int, width: int | None, dtype_name: str | None, device: torch.device
) -> Tensor | None:
    if width is None:
        return None
    assert dtype_name is not None, "a hidden width without a dtype"
    return torch.zeros(rows, width, dtype=getattr(torch, dtype_name), device=device)
