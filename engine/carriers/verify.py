"""Verify: the tree the target judges, what it says, and the new tokens.

Annotations are evaluated, so this module has no `from __future__ import annotations`.
"""

from dataclasses import dataclass
from typing import Annotated, Self

import torch
from jaxtyping import Bool, Float, Float32, Int32, Int64
from torch import Tensor

import engine.vocabulary  # noqa: F401  declares the engine's own axis names
from engine.sampling import TreeLaw
from engine.transfer import HostCopy
from shapecheck import carrier, contract, dtype, ids, indexes, invariant


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
