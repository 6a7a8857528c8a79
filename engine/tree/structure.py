"""Structure of a verify tree: who descends from whom, positions, and the links of the walk.

B requests   N verify width, root included
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from shapecheck import carrier, contract, indexes


@carrier
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeStructure:
    """Node 0 is the root; parents stand before their children, siblings in ascending order.

    `tree_mask[b, j, i]` is true iff i is j or an ancestor of j. `next_child` and `next_sibling`
    are local node indices, -1 where there is none.
    """

    tree_mask: Bool[Tensor, "bs num_draft_tokens num_draft_tokens"]
    positions: Annotated[Int64[Tensor, "bs num_draft_tokens"], indexes("max_context")]
    next_child: Annotated[Int64[Tensor, "bs num_draft_tokens"], indexes("num_draft_tokens", pad=-1)]
    next_sibling: Annotated[
        Int64[Tensor, "bs num_draft_tokens"], indexes("num_draft_tokens", pad=-1)
    ]


@contract
def build_structure(
    parent_list: Tensor,
    top_scores_index: Int64[Tensor, "bs num_draft_tokens-1"],
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")],
    *,
    topk: int,
) -> TreeStructure:
    """The structure of the selected nodes, their root at position `seq_lens`.

    `parent_list` and `top_scores_index` are those of `SelectedNodes`.
    """
    node_BN = node_ids(top_scores_index)
    root_B1 = node_BN[:, :1]
    expanded = parent_list if parent_list.shape[1] else root_B1
    # Candidates stand K by K below the expanded nodes, in the order of the parent list.
    parent_flat = expanded.gather(1, top_scores_index // topk)
    parent_local = torch.searchsorted(node_BN, parent_flat.contiguous())
    return _from_parents(torch.cat([root_B1 + 1, parent_local], dim=1), seq_lens)


@contract
def node_ids(
    top_scores_index: Int64[Tensor, "bs num_draft_tokens-1"],
) -> Int64[Tensor, "bs num_draft_tokens"]:
    """What each node is called in a parent list: the root -1, a candidate its index."""
    root_B1 = top_scores_index.new_full((len(top_scores_index), 1), -1)
    return torch.cat([root_B1, top_scores_index], dim=1)


@contract
def chain_structure(
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")], *, num_draft_tokens: int
) -> TreeStructure:
    """The structure of N nodes in a row, their root at position `seq_lens`."""
    before = torch.arange(-1, num_draft_tokens - 1, device=seq_lens.device).clamp(min=0)
    return _from_parents(before.expand(len(seq_lens), num_draft_tokens), seq_lens)


def _from_parents(parent_BN: Tensor, seq_lens_B: Tensor) -> TreeStructure:
    """The structure in which node j hangs below `parent_BN[:, j]`; the root is its own parent."""
    rows, width = parent_BN.shape
    node_N = torch.arange(width, device=parent_BN.device)
    mask_BNN = (node_N.unsqueeze(1) == node_N).expand(rows, width, width)
    jump_BN = parent_BN
    # Pointer doubling: after i rounds a node knows its nearest 2**i - 1 ancestors.
    for _ in range((width - 1).bit_length()):
        mask_BNN = mask_BNN | mask_BNN.gather(1, jump_BN.unsqueeze(2).expand(rows, width, width))
        jump_BN = jump_BN.gather(1, jump_BN)
    drawn_N = node_N > 0
    is_child_BNN = (parent_BN.unsqueeze(1) == node_N.unsqueeze(1)) & drawn_N
    is_sibling_BNN = (
        (parent_BN.unsqueeze(1) == parent_BN.unsqueeze(2))
        & (node_N > node_N.unsqueeze(1))
        & drawn_N.unsqueeze(1)
    )
    return TreeStructure(
        tree_mask=mask_BNN,
        positions=seq_lens_B.unsqueeze(1) + mask_BNN.sum(dim=2) - 1,
        next_child=_first(is_child_BNN),
        next_sibling=_first(is_sibling_BNN),
    )


def _first(flags_BNN: Tensor) -> Tensor:
    """Per row of the last axis the index of the first true flag, -1 where there is none."""
    width = flags_BNN.shape[-1]
    index_N = torch.arange(width, device=flags_BNN.device)
    first_BN = torch.where(flags_BNN, index_N, width).amin(dim=-1)
    return torch.where(first_BN == width, -1, first_BN)
