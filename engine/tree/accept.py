"""Greedy acceptance: the path of the draft tree that the target's own choices follow.

B requests   N verify width, root included   D width of the accept table
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Int32, Int64
from torch import Tensor

from shapecheck import carrier, ids, indexes


@carrier
@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What verification keeps of a tree.

    `predict` is the token after each node, set along the accepted path and 0 elsewhere;
    `accept_index` the local node indices of the path, column 0 the root, -1 pads; `accept_lens`
    the nodes of the path, root included, which is also the number of new tokens.
    """

    predict: Annotated[Int64[Tensor, "bs num_draft_tokens"], ids("target")]
    accept_index: Annotated[Int64[Tensor, "bs accept_width"], indexes("num_draft_tokens", pad=-1)]
    accept_lens: Int32[Tensor, "bs"]


def accept_greedy(
    draft_tokens: Int64[Tensor, "bs num_draft_tokens"],
    target_predict: Int64[Tensor, "bs num_draft_tokens"],
    tree_mask: Bool[Tensor, "bs num_draft_tokens num_draft_tokens"],
    *,
    accept_width: int,
) -> Accepted:
    """The path from the root on which each node's token is the target's choice at its parent.

    `target_predict` is the target's token after each node. Of equal siblings the first counts.
    No path may be longer than `accept_width`.
    """
    rows, width = draft_tokens.shape
    node_N = torch.arange(width, device=draft_tokens.device)
    # Ancestors stand before a node, so its parent is the last of them. The root gets itself.
    earlier_NN = node_N < node_N.unsqueeze(1)
    parent_BN = torch.where(tree_mask & earlier_NN, node_N, 0).amax(dim=2)
    repeated_BNN = (
        earlier_NN
        & (node_N > 0)
        & (parent_BN.unsqueeze(1) == parent_BN.unsqueeze(2))
        & (draft_tokens.unsqueeze(1) == draft_tokens.unsqueeze(2))
    )
    wanted_BN = draft_tokens == target_predict.gather(1, parent_BN)
    agrees_BN = (wanted_BN & ~repeated_BNN.any(dim=2)) | (node_N == 0)
    accepted_BN = (agrees_BN.unsqueeze(1) | ~tree_mask).all(dim=2)
    depth_BN = tree_mask.sum(dim=2) - 1
    # One column more than the table takes what is not accepted.
    index = draft_tokens.new_full((rows, accept_width + 1), -1)
    column_BN = torch.where(accepted_BN, depth_BN, accept_width)
    index = index.scatter(1, column_BN, node_N.expand(rows, width))
    return Accepted(
        predict=torch.where(accepted_BN, target_predict, 0),
        accept_index=index[:, :accept_width],
        accept_lens=accepted_BN.sum(dim=1, dtype=torch.int32),
    )
