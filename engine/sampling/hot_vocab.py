"""HotVocab: which target tokens the draft can speak of, and how its laws look to the target.

Vd draft vocabulary   Vt target vocabulary
"""

from dataclasses import dataclass
from typing import Annotated, Self

import torch
from jaxtyping import Int64
from torch import Tensor

from engine.errors import SizeError
from shapecheck import carrier, ids


@carrier
@dataclass(frozen=True, slots=True, kw_only=True)
class HotVocab:
    """`hot[d]` is the target id of draft id d; `cold[t]` the draft id of target id t, or -1.

    `is_whole` says that the two vocabularies are one, so that nothing needs to move.
    """

    hot: Annotated[Int64[Tensor, "draft_vocab"], ids("target")]
    cold: Annotated[Int64[Tensor, "target_vocab"], ids("draft", pad=-1)]
    is_whole: bool

    @classmethod
    def whole(cls, vocab: int, *, device: torch.device) -> Self:
        """A draft that speaks the target's own vocabulary."""
        ids_V = torch.arange(vocab, device=device)
        return cls(hot=ids_V, cold=ids_V, is_whole=True)

    @classmethod
    def from_offsets(cls, d2t: Int64[Tensor, "draft_vocab"], *, target_vocab: int) -> Self:
        """The vocabulary of a checkpoint's `d2t`, which holds offsets: hot = d2t + arange(Vd).

        Reads values on the host: for loading, not for a step. Raises SizeError when the
        ids leave the target's vocabulary or repeat, as they do when `d2t` holds ids already.
        """
        hot = d2t + torch.arange(len(d2t), device=d2t.device)
        outside = (hot < 0) | (hot >= target_vocab)
        if bool(outside.any()):
            first = int(outside.int().argmax())
            raise SizeError.of(
                f"d2t[{first}] = {int(d2t[first])} maps draft id {first} to target id "
                f"{int(hot[first])}, outside target_vocab={target_vocab}; d2t holds offsets "
                "(target id minus draft id): subtract arange(len(d2t)) if yours holds ids, or use "
                "the target this draft was trained for",
                expected=target_vocab,
                found=int(hot[first]),
                code="SHP305",
            )
        if int(hot.bincount().max()) > 1:
            raise SizeError.of(
                "d2t maps two draft ids to one target id; d2t holds offsets (target id minus "
                "draft id): subtract arange(len(d2t)) if yours holds ids",
                expected=f"{len(hot)} target ids",
                found=f"{len(hot.unique())}",
                code="SHP305",
            )
        cold = hot.new_full((target_vocab,), -1)
        cold[hot] = torch.arange(len(hot), device=hot.device)
        return cls(hot=hot, cold=cold, is_whole=len(hot) == target_vocab and bool((d2t == 0).all()))

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """The target ids of draft ids, of any shape."""
        return draft_ids if self.is_whole else self.hot[draft_ids]

    def to_target(self, weights: Tensor) -> Tensor:
        """Weights over the draft's vocabulary (rows, Vd), spread over the target's (rows, Vt)."""
        if self.is_whole:
            return weights
        scattered = weights.new_zeros(len(weights), len(self.cold))
        return scattered.scatter(1, self.hot.expand(len(weights), -1), weights)
