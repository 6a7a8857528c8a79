"""Choice of the N-1 verified nodes among all candidates of the draft steps.

B requests   N verify width, root included   K branching   G = 1 + (S-1)*K nodes ever expanded
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Int64
from torch import Tensor

from engine.errors import SizeError
from engine.tree.levels import Level, best_first
from engine.tree.structure import node_ids
from shapecheck import carrier, contract, ids


@carrier
@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedNodes:
    """The nodes of the verify tree, by flat index.

    `parent_list` is (bs, 1+(num_steps-1)*topk), the flat index of every expanded node with the
    root as -1 in column 0; it is (bs, 0) when there was one step and only the root was expanded.
    """

    draft_tokens: Annotated[Int64[Tensor, "bs num_draft_tokens"], ids("target")]
    top_scores_index: Int64[Tensor, "bs num_draft_tokens-1"]
    parent_list: Tensor


@contract
def select_nodes(
    levels: Sequence[Level],
    bonus_tokens: Annotated[Int64[Tensor, "bs"], ids("target")],
    *,
    num_draft_tokens: int,
) -> SelectedNodes:
    """The N-1 candidates of largest cumulative probability, ascending, behind the root.

    Every chosen node's ancestors are chosen too. Raises SizeError when the levels hold
    fewer than N-1 candidates.
    """
    check_enough(levels, num_draft_tokens)
    scores = torch.cat([level.scores for level in levels], dim=1)
    tokens = torch.cat([level.tokens for level in levels], dim=1)
    index = best_first(scores, num_draft_tokens - 1).sort(dim=1).values
    # The nodes opened after the last level were never expanded, so nobody's parent is among them.
    parents = [level.parents for level in levels[:-1]]
    return SelectedNodes(
        draft_tokens=torch.cat([bonus_tokens.unsqueeze(1), tokens.gather(1, index)], dim=1),
        top_scores_index=index,
        parent_list=torch.cat(parents, dim=1) if parents else index.new_empty(len(index), 0),
    )


def check_enough(levels: Sequence[Level], num_draft_tokens: int) -> None:
    """Raises SizeError when the levels hold fewer than N-1 candidates."""
    available = sum(level.scores.shape[1] for level in levels)
    if num_draft_tokens - 1 > available:
        raise SizeError.of(
            f"num_draft_tokens is {num_draft_tokens}, but {len(levels)} draft steps offer "
            f"{available} candidates; set num_draft_tokens to {available + 1} or less, or raise "
            "num_steps or topk",
            expected=num_draft_tokens - 1,
            found=available,
            code="SHP401",
        )


@contract
def law_columns(
    parent_list: Tensor, top_scores_index: Int64[Tensor, "bs num_draft_tokens-1"]
) -> Int64[Tensor, "bs num_draft_tokens"]:
    """For each tree node the column of `parent_list` where it was expanded, 0 if it never was.

    It finds, in the laws of all draft steps side by side, the one a node's children were drawn
    from. A node that was never expanded has no children: nobody reads what its column points at.
    """
    node_BN = node_ids(top_scores_index)
    expanded_BG = parent_list if parent_list.shape[1] else node_BN[:, :1]
    same_BNG = node_BN.unsqueeze(2) == expanded_BG.unsqueeze(1)
    columns = torch.arange(expanded_BG.shape[1], device=node_BN.device)
    return torch.where(same_BNG, columns, 0).sum(dim=2)
