"""Lossless acceptance of drawn candidates: the emitted tokens follow the target's law exactly.

Chains: Leviathan, Kalman, Matias, "Fast inference from transformers via speculative decoding",
arXiv:2211.17192, and Chen et al., arXiv:2302.01318. Trees apply the rule to siblings one after the
other, each judged under what the earlier ones left over: multi-step speculative sampling of
SpecInfer, arXiv:2305.09781, here for siblings drawn WITHOUT replacement as in Recursive
Speculative Decoding, Jeon et al., arXiv:2402.14160.

With r what is left of the target's law at a node (at first p) and q the law the next child x was
drawn from: accept x with probability min(1, r(x)/q(x)); else r becomes max(r - q, 0) and q loses
x, both renormalised. The token after the last accepted node is drawn from its r. An exhausted q
means that x was chosen, not drawn: then q is the point law of x. Sums are taken in whole units
(engine.sampling.units), all else is float64: every device keeps the same path.

Candidates that were all chosen (best tokens, n-grams) need no law: a token is drawn from the
target at every node, and `engine.tree.accept_greedy` follows the draws as far as the tree goes.

B requests   N verify width, root included   V target vocabulary   U counts units
"""

import torch
from jaxtyping import Float32, Float64, Int64
from torch import Tensor

from engine.sampling.draft_law import TreeLaw
from engine.sampling.draw import draw_units
from engine.sampling.hot_vocab import HotVocab
from engine.sampling.units import WHOLE, units
from engine.tree.accept import Accepted
from shapecheck import contract


def accept_chain(
    target_probs: Float32[Tensor, "bs num_draft_tokens target_vocab"],
    draft_tokens: Int64[Tensor, "bs num_draft_tokens"],
    law: TreeLaw,
    vocab: HotVocab,
    accept_coins: Float64[Tensor, "bs num_draft_tokens"],
    final_coins: Float64[Tensor, "bs"],
    *,
    accept_width: int,
) -> Accepted:
    """Rejection sampling along a chain; `accept_coins[:, j]` decides node j, column 0 is unused.

    Equal to `accept_tree` on a chain, with one pass over the vocabulary instead of N-1.
    """
    width = draft_tokens.shape[1]
    child_BN = _children(draft_tokens)
    coin_BN = accept_coins.roll(-1, dims=1)
    weight_BU = units(target_probs.gather(2, child_BN.unsqueeze(2)).squeeze(2))
    draft_id_BN = vocab.cold[child_BN]
    own_BU = units(law.probs.gather(2, draft_id_BN.clamp(min=0).unsqueeze(2)).squeeze(2))
    mass_BU = units(law.probs).sum(dim=2)
    chance_BN = torch.where(draft_id_BN < 0, 0.0, _share(own_BU, mass_BU))
    chance_BN = torch.where(mass_BU == 0, 1.0, chance_BN)
    node_N = torch.arange(width, device=draft_tokens.device)
    judged_BN = (chance_BN > 0.0) & (node_N < width - 1)
    takes_BN = judged_BN & (coin_BN * chance_BN < _share(weight_BU, WHOLE))
    last_B = takes_BN.int().cumprod(dim=1).sum(dim=1)
    last_B1 = last_B.unsqueeze(1)
    left_BU = units(_row(target_probs, last_B))
    rest_BU = vocab.to_target(units(_row(law.probs, last_B)))
    law_BV = _law_of(rest_BU, child_BN.gather(1, last_B1))
    reduced_BU, _ = _without(left_BU, torch.full_like(last_B1, WHOLE), law_BV)
    final_B = draw_units(
        torch.where(judged_BN.gather(1, last_B1), reduced_BU, left_BU), final_coins
    )
    after_BN = child_BN.scatter(1, last_B1, final_B.unsqueeze(1))
    column_D = torch.arange(accept_width, device=draft_tokens.device)
    return Accepted(
        predict=torch.where(node_N <= last_B1, after_BN, 0),
        accept_index=torch.where(column_D <= last_B1, column_D, -1),
        accept_lens=(last_B + 1).to(torch.int32),
    )


def accept_tree(
    target_probs: Float32[Tensor, "bs num_draft_tokens target_vocab"],
    draft_tokens: Int64[Tensor, "bs num_draft_tokens"],
    law: TreeLaw,
    vocab: HotVocab,
    next_child: Int64[Tensor, "bs num_draft_tokens"],
    next_sibling: Int64[Tensor, "bs num_draft_tokens"],
    accept_coins: Float64[Tensor, "bs num_draft_tokens"],
    final_coins: Float64[Tensor, "bs"],
    *,
    accept_width: int,
) -> Accepted:
    """Recursive rejection sampling over the children of each node, in the order of the draws.

    `accept_coins[:, j]` decides node j, column 0 is unused. Lossless as long as no drawn child
    was left out of the tree for the token it holds: build the tree with `engine.tree.rank_scores`.
    """
    rows, width = draft_tokens.shape
    node_B = draft_tokens.new_zeros(rows)
    depth_B = draft_tokens.new_zeros(rows)
    child_B = next_child[:, 0]
    predict_BN = torch.zeros_like(draft_tokens)
    path_BD = draft_tokens.new_full((rows, accept_width), -1)
    path_BD[:, 0] = 0
    left_BU = units(target_probs[:, 0])
    whole_B1 = draft_tokens.new_full((rows, 1), WHOLE)
    rest_BU = vocab.to_target(units(law.probs[:, 0]))
    # Each round judges one node, and none twice: N-1 rounds end every walk without a device sync.
    for _ in range(width - 1):
        live_B = child_B >= 0
        at_B = child_B.clamp(min=0)
        token_B1 = _pick(draft_tokens, at_B).unsqueeze(1)
        law_BV = _law_of(rest_BU, token_B1)
        chance_B = law_BV.gather(1, token_B1).squeeze(1)
        # A token its law cannot give was not drawn from it: judging it would bend the residual.
        judged_B = live_B & (chance_B > 0.0)
        weight_B = _share(left_BU.gather(1, token_B1), whole_B1).squeeze(1)
        taken_B = judged_B & (_pick(accept_coins, at_B) * chance_B < weight_B)
        take_B1 = taken_B.unsqueeze(1)
        refused_B1 = (judged_B & ~taken_B).unsqueeze(1)
        reduced_BU, mass_B1 = _without(left_BU, whole_B1, law_BV)
        left_BU = torch.where(refused_B1, reduced_BU, left_BU)
        whole_B1 = torch.where(refused_B1, mass_B1, whole_B1)
        rest_BU = torch.where(live_B.unsqueeze(1), rest_BU.scatter(1, token_B1, 0), rest_BU)
        left_BU = torch.where(take_B1, units(_row(target_probs, at_B)), left_BU)
        whole_B1 = torch.where(take_B1, WHOLE, whole_B1)
        rest_BU = torch.where(take_B1, vocab.to_target(units(_row(law.probs, at_B))), rest_BU)
        predict_BN = _put(predict_BN, node_B, token_B1.squeeze(1), taken_B)
        depth_B = depth_B + taken_B
        path_BD = _put(path_BD, depth_B.clamp(max=accept_width - 1), at_B, taken_B)
        node_B = torch.where(taken_B, at_B, node_B)
        after_B = torch.where(taken_B, _pick(next_child, at_B), _pick(next_sibling, at_B))
        child_B = torch.where(live_B, after_B, child_B)
    final_B = draw_units(left_BU, final_coins)
    return Accepted(
        predict=predict_BN.scatter(1, node_B.unsqueeze(1), final_B.unsqueeze(1)),
        accept_index=path_BD,
        accept_lens=(depth_B + 1).to(torch.int32),
    )


@contract
def _children(
    draft_tokens: Int64[Tensor, "bs num_draft_tokens"],
) -> Int64[Tensor, "bs num_draft_tokens"]:
    """The child of every node of a chain; the last has none, and its stand-in is never judged."""
    return torch.cat([draft_tokens[:, 1:], torch.zeros_like(draft_tokens[:, :1])], dim=1)


def _share(part_U: Tensor, whole_U: Tensor | int) -> Tensor:
    """The quotient of two counts in float64."""
    return part_U.double() / whole_U


def _law_of(rest_BU: Tensor, token_B1: Tensor) -> Tensor:
    """The law of the next child: what is left of q, or the point law once nothing is left."""
    mass_B1 = rest_BU.sum(dim=1, keepdim=True)
    point_BV = torch.zeros_like(rest_BU, dtype=torch.float64).scatter(1, token_B1, 1.0)
    return torch.where(mass_B1 == 0, point_BV, _share(rest_BU, mass_B1))


def _without(left_BU: Tensor, whole_B1: Tensor, law_BV: Tensor) -> tuple[Tensor, Tensor]:
    """The residual law after a refusal, and its sum."""
    reduced_BU = units(_share(left_BU, whole_B1) - law_BV)
    mass_B1 = reduced_BU.sum(dim=1, keepdim=True)
    # Nothing is left only where both laws agree to rounding, and there a refusal is rounding too.
    some_B1 = mass_B1 > 0
    return torch.where(some_B1, reduced_BU, left_BU), torch.where(some_B1, mass_B1, whole_B1)


def _row(table_BNV: Tensor, index_B: Tensor) -> Tensor:
    """`table[b, index[b]]` for every request."""
    index = index_B.view(-1, 1, 1).expand(-1, 1, table_BNV.shape[2])
    return table_BNV.gather(1, index).squeeze(1)


def _pick(table_BN: Tensor, index_B: Tensor) -> Tensor:
    return table_BN.gather(1, index_B.unsqueeze(1)).squeeze(1)


def _put(table_BN: Tensor, index_B: Tensor, value_B: Tensor, where_B: Tensor) -> Tensor:
    """`table` with `value` at `index` in the rows where `where` holds."""
    value_B = torch.where(where_B, value_B, _pick(table_BN, index_B))
    return table_BN.scatter(1, index_B.unsqueeze(1), value_B.unsqueeze(1))
