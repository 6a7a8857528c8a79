"""TreeOps: the small tensor operations between forwards, as torch code or as kernels.

Both kinds give the same tokens from the same coins; which one runs is chosen when an engine is
built, never inside a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from torch import Tensor

from engine import sampling, tree
from engine.sampling import HotVocab, TreeLaw, Truncate
from engine.tree import Accepted, BuiltTree, Frontier, KeptPath, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeOps:
    """Each field is called like the function of `engine.sampling` or `engine.tree` that has its
    name; `accept_chain` takes the links of the tree as `accept_tree` does.
    """

    argmax: Callable[[Tensor], Tensor]
    coins: Callable[..., Tensor]
    draw: Callable[[Tensor, Tensor], Tensor]
    draw_children: Callable[[Tensor, Tensor, Tensor], Tensor]
    truncate: Truncate
    choose_children: Callable[..., tuple[Tensor, Tensor]]
    next_level: Callable[..., tuple[Level, Frontier]]
    build_tree: Callable[..., BuiltTree]
    accept_greedy: Callable[..., Accepted]
    accept_chain: Callable[..., Accepted]
    accept_tree: Callable[..., Accepted]
    keep_path: Callable[..., KeptPath]

    @classmethod
    def torch(cls) -> Self:
        """Plain tensor code, for any device."""
        return cls(
            argmax=sampling.argmax,
            coins=sampling.coins,
            draw=sampling.draw,
            draw_children=sampling.draw_children,
            truncate=sampling.truncate,
            choose_children=sampling.choose_children,
            next_level=tree.next_level,
            build_tree=tree.build_tree,
            accept_greedy=tree.accept_greedy,
            accept_chain=_along_a_chain,
            accept_tree=sampling.accept_tree,
            keep_path=tree.keep_path,
        )

    @classmethod
    def triton(cls) -> Self:
        """A few launches each; needs triton, and a GPU or its interpreter."""
        from engine.kernels import accept, argmax, coins, draw, level, path, reject, topk, truncate
        from engine.kernels import tree as build

        return cls(
            argmax=argmax.argmax,
            coins=coins.coins,
            draw=draw.draw,
            draw_children=draw.draw_children,
            truncate=truncate.truncate,
            choose_children=topk.choose_children,
            next_level=level.next_level,
            build_tree=build.build_tree,
            accept_greedy=accept.accept_greedy,
            accept_chain=reject.accept_tree,
            accept_tree=reject.accept_tree,
            keep_path=path.keep_path,
        )


def _along_a_chain(
    target_probs: Tensor,
    draft_tokens: Tensor,
    law: TreeLaw,
    vocab: HotVocab,
    next_child: Tensor,
    next_sibling: Tensor,
    accept_coins: Tensor,
    final_coins: Tensor,
    *,
    accept_width: int,
) -> Accepted:
    """accept_chain, which knows the links of a chain."""
    return sampling.accept_chain(
        target_probs,
        draft_tokens,
        law,
        vocab,
        accept_coins,
        final_coins,
        accept_width=accept_width,
    )
