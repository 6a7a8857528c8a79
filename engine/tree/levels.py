"""Levels of a growing draft tree: the candidates of one draft step and the nodes it expands next.

B requests   K branching (topk)   C = K + (S-1)*K*K candidates of S steps

A candidate is known by its *flat index* in the concatenation of all levels: the K candidates of
the first level are 0..K-1, those of level i >= 1 start at K + (i-1)*K*K and stand K by K below the
K frontier nodes of that level. A parent's flat index is therefore below each of its children's.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from shapecheck import carrier, contract, ids, indexes, invariant


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The candidates one draft step added.

    `scores` are cumulative probabilities, `tokens` target ids. `parents`: flat index of every node
    that was open for expansion after this level.
    """

    scores: Tensor
    tokens: Tensor
    parents: Tensor


@carrier
@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLevel(Level):
    """K candidates below the root; `parents` also names the root, as -1."""

    scores: Float32[Tensor, "bs topk"]
    tokens: Annotated[Int64[Tensor, "bs topk"], ids("target")]
    parents: Int64[Tensor, "bs topk+1"]


@carrier
@dataclass(frozen=True, slots=True, kw_only=True)
class NextLevel(Level):
    """K candidates below each of K frontier nodes."""

    scores: Float32[Tensor, "bs topk*topk"]
    tokens: Annotated[Int64[Tensor, "bs topk*topk"], ids("target")]
    parents: Int64[Tensor, "bs topk"]


@carrier
@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """The K nodes per request that the next draft forward expands.

    `parent_rows` are rows of the flattened (bs*topk) previous frontier: where a node's hidden
    state and draft KV come from.
    """

    tokens: Annotated[Int64[Tensor, "bs topk"], ids("target")]
    scores: Float32[Tensor, "bs topk"]
    parent_rows: Annotated[Int64[Tensor, "bs*topk"], indexes("bs*topk")]

    @invariant
    def parents_are_of_the_same_request(self) -> Tensor:
        """Row b*K + k continues one of the rows b*K to b*K + K-1."""
        requests, topk = self.tokens.shape
        own_B = torch.arange(requests, device=self.parent_rows.device)
        return self.parent_rows // topk == own_B.repeat_interleave(topk)


@contract
def first_level(
    topk_p: Float32[Tensor, "bs topk"],
    topk_tokens: Annotated[Int64[Tensor, "bs topk"], ids("target")],
) -> tuple[FirstLevel, Frontier]:
    """The level below the root; all of its K nodes are the first frontier. Tokens: target ids."""
    rows, topk = topk_tokens.shape
    scores_BK = _probabilities(topk_p)
    parents = torch.arange(-1, topk, device=topk_tokens.device).expand(rows, topk + 1)
    level = FirstLevel(scores=scores_BK, tokens=topk_tokens, parents=parents)
    frontier = Frontier(
        tokens=topk_tokens,
        scores=scores_BK,
        parent_rows=torch.arange(rows * topk, device=topk_tokens.device),
    )
    return level, frontier


@contract
def next_level(
    frontier: Frontier,
    topk_p: Float32[Tensor, "bs*topk topk"],
    topk_tokens: Annotated[Int64[Tensor, "bs*topk topk"], ids("target")],
    *,
    step: int,
) -> tuple[NextLevel, Frontier]:
    """The K*K children of `frontier` and the K best of them, the frontier of the next step.

    `step` counts from 1: the level's distance from `first_level`. Tokens: target ids.
    """
    rows, topk = frontier.tokens.shape
    # A child never scores above its parent, whatever the draft returned: with ties broken by the
    # lower flat index this is what keeps every selected node's ancestors selected.
    scores_BKK = frontier.scores.unsqueeze(-1) * _probabilities(topk_p).view(rows, topk, topk)
    scores = scores_BKK.flatten(1)
    tokens = topk_tokens.reshape(rows, topk * topk)
    best_BK = best_first(scores, topk)
    row_start_B1 = torch.arange(0, rows * topk, topk, device=tokens.device).unsqueeze(1)
    level = NextLevel(
        scores=scores, tokens=tokens, parents=best_BK + (topk + (step - 1) * topk * topk)
    )
    chosen = Frontier(
        tokens=tokens.gather(1, best_BK),
        scores=scores.gather(1, best_BK),
        parent_rows=(row_start_B1 + best_BK // topk).flatten(),
    )
    return level, chosen


def best_first(scores: Tensor, count: int) -> Tensor:
    """Indices of the `count` largest entries of each row, best first; ties keep the lower index."""
    return scores.sort(dim=1, descending=True, stable=True).indices[:, :count]


def rank_scores(rows: int, topk: int, *, device: torch.device) -> Tensor:
    """Scores (rows, topk) f32 of drawn children, by the order of the draws alone: 1/2, 1/4, ...

    A tree of *drawn* children may not be pruned by their probabilities: the survivors would no
    longer follow the law they were drawn from. These scores make a fixed tree instead, which
    keeps the first draws of every node.
    """
    ranks = torch.arange(1, topk + 1, device=device, dtype=torch.float32)
    return torch.pow(0.5, ranks).expand(rows, topk)


def _probabilities(scores: Tensor) -> Tensor:
    """`scores` in [0, 1], NaN as 0: a broken draft may cost speed, never a malformed tree."""
    return torch.nan_to_num(scores, nan=0.0).clamp(0.0, 1.0)
