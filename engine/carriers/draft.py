"""The draft loop: its roots, its steps, and the tree it grows.

Annotations are evaluated, so this module has no `from __future__ import annotations`.
"""

from dataclasses import dataclass
from typing import Annotated, Self

from jaxtyping import Bool, Float, Float32, Int64
from torch import Tensor

import engine.vocabulary  # noqa: F401  declares the engine's own axis names
from engine.carriers.batch import BatchRows, DraftState
from engine.sampling import BatchControls, RootLaw, TreeLaw
from shapecheck import carrier, dtype, ids, indexes, invariant


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
