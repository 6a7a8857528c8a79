"""Sampler: every choice of a token in the engine, by one rule fixed when the worker is built.

B requests   K branching   N verify width, root included
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from engine.errors import EngineError
from engine.sampling.coins import Stream, coins
from engine.sampling.controls import BatchControls
from engine.sampling.draft_law import (
    RootLaw,
    StepLaw,
    TreeLaw,
    choose_children,
    draw_root,
    draw_step,
)
from engine.sampling.draw import draw
from engine.sampling.filters import sampling_law
from engine.sampling.hot_vocab import HotVocab
from engine.sampling.penalties import TokenCounts, penalise
from engine.sampling.rejection import accept_chain, accept_matching, accept_tree
from engine.tree import Accepted, TreeStructure, accept_greedy, rank_scores
from shapecheck import ids


@dataclass(frozen=True, slots=True, kw_only=True)
class RootChildren:
    """Candidates below the root, draft ids; `law` is None where they were chosen."""

    topk_p: Float32[Tensor, "bs topk"]
    topk_index: Annotated[Int64[Tensor, "bs topk"], ids("draft")]
    law: RootLaw | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChildren:
    """Candidates below one frontier, draft ids; `law` is None where they were chosen."""

    topk_p: Float32[Tensor, "bs*topk topk"]
    topk_index: Annotated[Int64[Tensor, "bs*topk topk"], ids("draft")]
    law: StepLaw | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """Chooses candidates and accepts them, losslessly for every request of a mixed batch.

    With `draws` the draft draws its candidates and hands their law to `accept`; without, it takes
    its best tokens and `accept` needs no law. The rule holds for the sampler's life: states of
    both kinds could not be merged into one batch.
    """

    vocab: HotVocab
    topk: int
    accept_width: int
    draws: bool

    def root_children(
        self,
        logits: Float32[Tensor, "bs draft_vocab"],
        root_positions: Int64[Tensor, "bs"],
        controls: BatchControls,
    ) -> RootChildren:
        """K candidates below each root, whose own position seeds the draws."""
        if not self.draws:
            probs, tokens = choose_children(logits, topk=self.topk)
            return RootChildren(topk_p=probs, topk_index=tokens, law=None)
        lane_BK = coins(controls.seeds, root_positions, Stream.DRAFT, lanes=self.topk)
        tokens, law = draw_root(logits, controls, lane_BK)
        scores = rank_scores(len(tokens), self.topk, device=tokens.device)
        return RootChildren(topk_p=scores, topk_index=tokens, law=law)

    def step_children(
        self,
        logits: Float32[Tensor, "bs*topk draft_vocab"],
        root_positions: Int64[Tensor, "bs"],
        controls: BatchControls,
        *,
        step: int,
    ) -> StepChildren:
        """K candidates below each frontier node; `step` counts from 1 as in `next_level`."""
        if not self.draws:
            probs, tokens = choose_children(logits, topk=self.topk)
            return StepChildren(topk_p=probs, topk_index=tokens, law=None)
        lanes = self.topk * self.topk
        lane_BL = coins(
            controls.seeds,
            root_positions,
            Stream.DRAFT,
            lanes=lanes,
            first_lane=self.topk + (step - 1) * lanes,
        )
        tokens, law = draw_step(logits, controls, lane_BL.reshape(-1, self.topk))
        scores = rank_scores(len(tokens), self.topk, device=tokens.device)
        return StepChildren(topk_p=scores, topk_index=tokens, law=law)

    def accept(
        self,
        logits: Float32[Tensor, "bs num_draft_tokens target_vocab"],
        draft_tokens: Annotated[Int64[Tensor, "bs num_draft_tokens"], ids("target")],
        tree: TreeStructure,
        law: TreeLaw | None,
        controls: BatchControls,
        counts: TokenCounts | None = None,
    ) -> Accepted:
        """The accepted path; `counts` hold everything before the root.

        Raises EngineError when a request penalises and there are no counts.
        """
        if controls.penalises:
            logits = penalise(logits, draft_tokens, tree.tree_mask, _needed(counts), controls)
        if controls.all_greedy:
            best_BN = logits.argmax(dim=-1)
            return accept_greedy(
                draft_tokens, best_BN, tree.tree_mask, accept_width=self.accept_width
            )
        target_probs = sampling_law(logits, controls)
        root_B = tree.positions[:, 0]
        lanes = draft_tokens.shape[1]
        accept_BN = coins(controls.seeds, root_B, Stream.ACCEPT, lanes=lanes)
        if law is None:
            return accept_matching(
                target_probs,
                draft_tokens,
                tree.tree_mask,
                accept_BN,
                accept_width=self.accept_width,
            )
        final_B = coins(controls.seeds, root_B, Stream.FINAL, lanes=1).squeeze(1)
        judge: Callable[..., Accepted] = accept_chain
        links: tuple[Tensor, ...] = ()
        if self.topk > 1:
            judge, links = accept_tree, (tree.next_child, tree.next_sibling)
        return judge(
            target_probs,
            draft_tokens,
            law,
            self.vocab,
            *links,
            accept_BN,
            final_B,
            accept_width=self.accept_width,
        )


def next_tokens(
    logits: Float32[Tensor, "bs target_vocab"],
    positions: Int64[Tensor, "bs"],
    controls: BatchControls,
    counts: TokenCounts | None = None,
) -> Annotated[Int64[Tensor, "bs"], ids("target")]:
    """The tokens at `positions`, drawn from the target alone: after prefill, or without a draft.

    `counts` hold everything before those positions. Raises EngineError when a request penalises
    and there are no counts.
    """
    logits_BNV = logits.unsqueeze(1)
    if controls.penalises:
        nothing = torch.zeros(len(logits), 1, dtype=torch.int64, device=logits.device)
        logits_BNV = penalise(
            logits_BNV, nothing, nothing.unsqueeze(2).bool(), _needed(counts), controls
        )
    if controls.all_greedy:
        return logits_BNV[:, 0].argmax(dim=-1)
    coin_B = coins(controls.seeds, positions, Stream.TARGET, lanes=1).squeeze(1)
    return draw(sampling_law(logits_BNV, controls)[:, 0], coin_B)


def _needed(counts: TokenCounts | None) -> TokenCounts:
    if counts is None:
        raise EngineError(
            "a request of this batch has penalties, but no token counts came with it; pass "
            "TokenCounts.of(prompts, outputs, ...)"
        )
    return counts
