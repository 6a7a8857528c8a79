"""The carriers: what crosses a phase boundary, with the width and dtype each tensor must have.

B requests   K branching   N verify width, root included   D width of the accept table
T rows of a ragged forward   L_b committed length of request b before the iteration

Annotations are evaluated, so this module has no `from __future__ import annotations`.
"""

from dataclasses import dataclass
from typing import Annotated, Self

import torch
from jaxtyping import Bool, Float, Float32, Int32, Int64
from torch import Tensor

import engine.vocabulary  # noqa: F401  declares the engine's own axis names
from engine.attention.base import Ragged
from engine.sampling import BatchControls, RootLaw, TreeLaw
from engine.transfer import HostCopy
from shapecheck import Dims, carrier, contract, dtype, ids, indexes, invariant


@carrier
@dataclass(slots=True, kw_only=True)
class BatchRows:
    """Where each live request stands: its row of the request table and its committed length.

    What the host knows itself stands beside it: `max_seq_len` bounds `seq_lens`, and
    `rows_on_host` repeats `req_rows_index`; neither needs to ask the device.
    """

    req_rows_index: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    max_seq_len: int
    rows_on_host: tuple[int, ...]

    @invariant
    def the_host_knows_the_rows(self) -> bool:
        """`rows_on_host` repeats `req_rows_index`."""
        return self.req_rows_index.tolist() == list(self.rows_on_host)


@carrier
@dataclass(slots=True, kw_only=True)
class DraftState:
    """What a draft carries from one iteration to the next: its first candidates, in draft ids.

    `draft_probs` is the law they were drawn from, None when they were chosen. Proposers without a
    draft model keep `topk_p` at zero: nothing is proposed yet.
    """

    topk_p: Float32[Tensor, "bs topk"]
    topk_index: Annotated[Int64[Tensor, "bs topk"], ids("draft")]
    hidden_states: Annotated[Float[Tensor, "bs recurrent_hidden"], dtype("draft")] | None
    draft_probs: RootLaw | None
    bonus_tokens: Annotated[Int64[Tensor, "bs"], ids("target")]

    @classmethod
    @contract(phase="idle")
    def idle(cls, dims: Dims, device: torch.device) -> Self:
        """The state of no requests: 0 rows, every width and dtype as when there are some."""
        recurrent = dims.get("recurrent_hidden")
        return cls(
            topk_p=torch.zeros(0, dims["topk"], device=device),
            topk_index=torch.zeros(0, dims["topk"], dtype=torch.int64, device=device),
            hidden_states=None
            if recurrent is None
            else torch.zeros(0, recurrent, dtype=_dtype(dims.draft_dtype), device=device),
            draft_probs=None,
            bonus_tokens=torch.zeros(0, dtype=torch.int64, device=device),
        )

    def merge(self, other: Self) -> Self:
        """The requests of both, these first; a state of no requests adds no rows."""
        return type(self)(
            topk_p=torch.cat((self.topk_p, other.topk_p)),
            topk_index=torch.cat((self.topk_index, other.topk_index)),
            hidden_states=_joined(self.hidden_states, other.hidden_states),
            draft_probs=None
            if self.draft_probs is None or other.draft_probs is None
            else RootLaw.merge([self.draft_probs, other.draft_probs]),
            bonus_tokens=torch.cat((self.bonus_tokens, other.bonus_tokens)),
        )

    def filter(self, kept: Tensor) -> Self:
        """The requests at these int64 positions, in this order."""
        hidden = self.hidden_states
        return type(self)(
            topk_p=self.topk_p[kept],
            topk_index=self.topk_index[kept],
            hidden_states=None if hidden is None else hidden[kept],
            draft_probs=None if self.draft_probs is None else self.draft_probs.rows(kept),
            bonus_tokens=self.bonus_tokens[kept],
        )


@carrier
@dataclass(slots=True, kw_only=True)
class PrefillInput:
    """New tokens of some requests, in order; `select_index` is the last row of each request
    whose prompt ends here, the only rows that need logits."""

    input_ids: Annotated[Int64[Tensor, "tokens"], ids("target")]
    positions: Annotated[Int64[Tensor, "tokens"], indexes("max_context")]
    select_index: Annotated[Int64[Tensor, "bs"], indexes("tokens")]
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    work: Ragged

    @invariant
    def work_counts_the_rows(self) -> bool:
        """The lengths that the host planned with are those of the tensors."""
        return sum(self.work.extend_lens) == len(self.input_ids)

    @invariant
    def positions_follow_the_work(self) -> bool:
        """The rows of a request stand at the columns that the host planned."""
        return self.positions.tolist() == self.work.columns()

    @invariant
    def a_prompt_ends_at_its_length(self) -> Tensor:
        """A selected row is the last of its prompt."""
        return self.positions[self.select_index] + 1 == self.seq_lens


@carrier
@dataclass(slots=True, kw_only=True)
class PrefillOutput:
    """Logits where a prompt ends, and the hidden states of every row for the draft."""

    logits: Float32[Tensor, "bs target_vocab"]
    hidden_states: Annotated[Float[Tensor, "tokens extend_hidden"], dtype("target")] | None


@carrier
@dataclass(slots=True, kw_only=True)
class PrefillExtendInput:
    """One draft forward after prefill: the target's hidden states, ids shifted as the draft wants.

    `seq_lens` are those of the requests whose prompt ends here; their last rows are selected.
    """

    hidden_states: Annotated[Float[Tensor, "tokens extend_hidden"], dtype("target")] | None
    input_ids: Annotated[Int64[Tensor, "tokens"], ids("target")]
    positions: Annotated[Int64[Tensor, "tokens"], indexes("max_context")]
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    req_rows_index: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    select_index: Annotated[Int64[Tensor, "bs"], indexes("tokens")]
    work: Ragged

    @invariant
    def work_counts_the_rows(self) -> bool:
        """The lengths that the host planned with are those of the tensors."""
        return sum(self.work.extend_lens) == len(self.input_ids)

    @invariant
    def positions_follow_the_work(self) -> bool:
        """The rows of a request stand at the columns that the host planned."""
        return self.positions.tolist() == self.work.columns()

    @invariant
    def a_prompt_ends_at_its_length(self) -> Tensor:
        """A selected row is the last of its prompt, or the token sampled behind it."""
        behind_B = self.seq_lens - self.positions[self.select_index]
        return (behind_B == 0) | (behind_B == 1)


@carrier
@dataclass(slots=True, kw_only=True)
class VerifyExtendInput:
    """One draft forward after verify: N rows a request, the accepted ones first, then padding.

    `seq_lens` are those before the iteration. Padding rows have position 0 and write to slot 0.
    """

    hidden_states: (
        Annotated[Float[Tensor, "bs*num_draft_tokens extend_hidden"], dtype("target")] | None
    )
    input_ids: Annotated[Int64[Tensor, "bs*num_draft_tokens"], ids("target")]
    positions: Annotated[Int64[Tensor, "bs*num_draft_tokens"], indexes("max_context")]
    accept_lens: Int32[Tensor, "bs"]
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    req_rows_index: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    select_index: Annotated[Int64[Tensor, "bs"], indexes("bs*num_draft_tokens")]
    max_seq_len: int

    @invariant
    def select_index_is_the_last_accepted_row(self) -> Tensor:
        """select_index[b] == b*N + A_b - 1."""
        requests = len(self.accept_lens)
        width = len(self.input_ids) // max(requests, 1)
        first_B = width * torch.arange(requests, device=self.select_index.device)
        return self.select_index == first_B + self.accept_lens - 1


@carrier
@dataclass(slots=True, kw_only=True)
class VerifyInput:
    """A draft tree for each request, its root the bonus token at position L_b.

    `slots` are the table's columns [L_b, L_b + N); `max_seq_len` bounds `seq_lens`.
    """

    draft_tokens: Annotated[Int64[Tensor, "bs num_draft_tokens"], ids("target")]
    tree_mask: Bool[Tensor, "bs num_draft_tokens num_draft_tokens"]
    positions: Annotated[Int64[Tensor, "bs num_draft_tokens"], indexes("max_context")]
    next_child: Annotated[Int64[Tensor, "bs num_draft_tokens"], indexes("num_draft_tokens", pad=-1)]
    next_sibling: Annotated[
        Int64[Tensor, "bs num_draft_tokens"], indexes("num_draft_tokens", pad=-1)
    ]
    draft_probs: TreeLaw | None
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    slots: Annotated[Int64[Tensor, "bs num_draft_tokens"], indexes("num_slots")]
    req_rows_index: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    max_seq_len: int

    @invariant
    def positions_follow_depth(self) -> Tensor:
        """A node's position is L_b + depth; depth counts its ancestors."""
        return self.positions == self.seq_lens[:, None] + self.tree_mask.sum(dim=2) - 1

    @invariant
    def links_follow_the_mask(self) -> Tensor:
        """A child's ancestors are its parent and the parent's; siblings have the same ones."""
        above_BNN = self.tree_mask & ~torch.eye(
            self.tree_mask.shape[1], dtype=torch.bool, device=self.tree_mask.device
        )
        child_BNN = _rows_at(above_BNN, self.next_child)
        sibling_BNN = _rows_at(above_BNN, self.next_sibling)
        is_child_BN = (child_BNN == self.tree_mask).all(dim=2)
        is_sibling_BN = (sibling_BNN == above_BNN).all(dim=2)
        return ((self.next_child < 0) | is_child_BN) & ((self.next_sibling < 0) | is_sibling_BN)

    @invariant
    def every_node_is_linked_once(self) -> Tensor:
        """Each node but the root is one other's next child or next sibling."""
        links_BL = torch.cat((self.next_child, self.next_sibling), dim=1)
        node_N1 = torch.arange(1, self.next_child.shape[1], device=links_BL.device)[:, None]
        return (links_BL[:, None, :] == node_N1).sum(dim=2) == 1

    @invariant
    def slots_are_distinct(self) -> bool:
        """No slot serves two nodes, of one request or of two."""
        used = self.slots[self.slots != 0]
        return len(used.unique()) == len(used)

    @invariant
    def laws_sum_to_one(self) -> Tensor | bool:
        """Every law that children were drawn from is a distribution."""
        if self.draft_probs is None:
            return True
        mass_BN = self.draft_probs.probs.sum(dim=2)
        return (self.next_child < 0) | ((mass_BN - 1).abs() < 1e-3)


@carrier
@dataclass(slots=True, kw_only=True)
class VerifyRows:
    """The part of a VerifyInput that the target's forward reads: what a graph is fed."""

    draft_tokens: Annotated[Int64[Tensor, "bs num_draft_tokens"], ids("target")]
    tree_mask: Bool[Tensor, "bs num_draft_tokens num_draft_tokens"]
    positions: Annotated[Int64[Tensor, "bs num_draft_tokens"], indexes("max_context")]
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    slots: Annotated[Int64[Tensor, "bs num_draft_tokens"], indexes("num_slots")]
    req_rows_index: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    max_seq_len: int

    @classmethod
    def of(cls, draft: VerifyInput) -> Self:
        """The rows of this tree."""
        return cls(
            draft_tokens=draft.draft_tokens,
            tree_mask=draft.tree_mask,
            positions=draft.positions,
            seq_lens=draft.seq_lens,
            slots=draft.slots,
            req_rows_index=draft.req_rows_index,
            max_seq_len=draft.max_seq_len,
        )


@carrier
@dataclass(slots=True, kw_only=True)
class TargetRows:
    """What the target's forward of a tree gives, before anything is accepted."""

    logits: Float32[Tensor, "bs num_draft_tokens target_vocab"]
    hidden_states: (
        Annotated[Float[Tensor, "bs num_draft_tokens extend_hidden"], dtype("target")] | None
    )


@carrier
@dataclass(slots=True, kw_only=True)
class DraftRoots:
    """Where the draft loop starts: each request's first candidates and its committed length."""

    topk_p: Float32[Tensor, "bs topk"]
    topk_index: Annotated[Int64[Tensor, "bs topk"], ids("draft")]
    hidden_states: Annotated[Float[Tensor, "bs recurrent_hidden"], dtype("draft")] | None
    bonus_tokens: Annotated[Int64[Tensor, "bs"], ids("target")]
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    req_rows_index: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    max_seq_len: int

    @classmethod
    def of(cls, state: DraftState, rows: BatchRows) -> Self:
        """The roots of these requests."""
        return cls(
            topk_p=state.topk_p,
            topk_index=state.topk_index,
            hidden_states=state.hidden_states,
            bonus_tokens=state.bonus_tokens,
            seq_lens=rows.seq_lens,
            req_rows_index=rows.req_rows_index,
            max_seq_len=rows.max_seq_len,
        )


@carrier
@dataclass(slots=True, kw_only=True)
class DrawnRoots:
    """Roots whose candidates were drawn: from `law`, and the next ones follow `controls`."""

    roots: DraftRoots
    law: RootLaw
    controls: BatchControls

    @property
    def seq_lens(self) -> Tensor:
        """Those of the roots, i64 (bs,)."""
        return self.roots.seq_lens


@carrier
@dataclass(slots=True, kw_only=True)
class DraftTree:
    """What the draft loop grows; the fields are those of a VerifyInput."""

    draft_tokens: Annotated[Int64[Tensor, "bs num_draft_tokens"], ids("target")]
    tree_mask: Bool[Tensor, "bs num_draft_tokens num_draft_tokens"]
    positions: Annotated[Int64[Tensor, "bs num_draft_tokens"], indexes("max_context")]
    next_child: Annotated[Int64[Tensor, "bs num_draft_tokens"], indexes("num_draft_tokens", pad=-1)]
    next_sibling: Annotated[
        Int64[Tensor, "bs num_draft_tokens"], indexes("num_draft_tokens", pad=-1)
    ]
    draft_probs: TreeLaw | None
    slots: Annotated[Int64[Tensor, "bs num_draft_tokens"], indexes("num_slots")]


@carrier
@dataclass(slots=True, kw_only=True)
class DraftStep:
    """One forward of the draft loop: K rows a request, each seeing the prefix and its ancestors.

    `tail_slots` are the slots of every step of the loop, `tail_mask` those a row sees.
    """

    input_ids: Annotated[Int64[Tensor, "bs topk"], ids("target")]
    positions: Annotated[Int64[Tensor, "bs topk"], indexes("max_context")]
    hidden_states: Annotated[Float[Tensor, "bs*topk recurrent_hidden"], dtype("draft")] | None
    slots: Annotated[Int64[Tensor, "bs topk"], indexes("num_slots")]
    tail_slots: Annotated[Int64[Tensor, "bs draft_tail"], indexes("num_slots")]
    tail_mask: Bool[Tensor, "bs topk draft_tail"]
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    req_rows_index: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    max_seq_len: int

    @invariant
    def positions_follow_depth(self) -> Tensor:
        """A row's position is L_b + depth, or one less where the draft reads ids one ahead."""
        behind_BK = self.seq_lens[:, None] + self.tail_mask.sum(dim=2) - self.positions
        return (behind_BK == 0) | (behind_BK == 1)

    @invariant
    def a_row_sees_what_it_writes(self) -> Tensor:
        """The slot of a row is one of the tail that its mask allows."""
        own_BKW = self.tail_slots[:, None, :] == self.slots[:, :, None]
        return (own_BKW & self.tail_mask).any(dim=2)


@carrier
@dataclass(slots=True, kw_only=True)
class StepRows:
    """What one forward of the draft loop gives for every row."""

    logits: Float32[Tensor, "bs*topk draft_vocab"]
    hidden_states: Annotated[Float[Tensor, "bs*topk recurrent_hidden"], dtype("draft")] | None


@carrier
@dataclass(slots=True, kw_only=True)
class ExtendRows:
    """What the draft's extend forward gives at each request's selected row."""

    logits: Float32[Tensor, "bs draft_vocab"]
    hidden_states: Annotated[Float[Tensor, "bs recurrent_hidden"], dtype("draft")] | None


@carrier
@dataclass(slots=True, kw_only=True)
class VerifyOutput:
    """What the target says of a tree, and the path that is kept.

    `predict` is the token after each node of the path, 0 elsewhere; `accept_index` the nodes of
    the path, -1 pads, of the same rank when there are no requests.
    """

    logits: Float32[Tensor, "bs num_draft_tokens target_vocab"]
    hidden_states: (
        Annotated[Float[Tensor, "bs num_draft_tokens extend_hidden"], dtype("target")] | None
    )
    predict: Annotated[Int64[Tensor, "bs num_draft_tokens"], ids("target")]
    accept_index: Annotated[Int64[Tensor, "bs accept_width"], indexes("num_draft_tokens", pad=-1)]
    accept_lens: Int32[Tensor, "bs"]

    @invariant
    def path_has_its_length(self) -> Tensor:
        """The first A_b entries of the accept table are nodes, the root first; the rest pads."""
        column_D = torch.arange(self.accept_index.shape[1], device=self.accept_index.device)
        inside_BD = column_D < self.accept_lens[:, None]
        return ((self.accept_index >= 0) == inside_BD) & ((column_D > 0) | (self.accept_index == 0))


@carrier
@dataclass(slots=True, kw_only=True)
class Emitted:
    """The new tokens of one iteration, -1 behind the last of each row: all that the host reads."""

    tokens: Annotated[Int64[Tensor, "bs accept_width"], ids("target", pad=-1)]
    lengths: Int32[Tensor, "bs"]

    @contract
    def table(self) -> Int64[Tensor, "bs accept_width+1"]:
        """Rows of accept_width tokens and their number."""
        return torch.cat((self.tokens, self.lengths.long()[:, None]), dim=1)

    def to_host(self) -> HostCopy:
        """The table, the one copy of an iteration; begun now."""
        return HostCopy(self.table())


def _rows_at(table_BNN: Tensor, index_BN: Tensor) -> Tensor:
    """`table[b, index[b, j]]` for every node; row 0 where the index is -1."""
    return table_BNN.gather(1, index_BN.clamp(min=0).unsqueeze(2).expand(table_BNN.shape))


def _joined(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    if first is None or second is None:
        return None
    return torch.cat((first, second))


def _dtype(name: str | None) -> torch.dtype:
    assert name is not None, "a hidden width without a draft dtype"
    return getattr(torch, name)
