"""Candidates: how a draft's next tokens come out of its logits.

B requests   K branching   R = B*K rows of a frontier, request-major   Vd draft vocabulary
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from engine.ops import TreeOps
from engine.sampling import (
    RootLaw,
    StepLaw,
    Stream,
    draw_root,
    draw_step,
)
from engine.sampling.batch import BatchSampling
from engine.tree import rank_scores


@dataclass(frozen=True, slots=True, kw_only=True)
class RootChildren:
    """K candidates below the root, draft ids; `law` is None when they were chosen."""

    scores: Tensor
    tokens: Tensor
    law: RootLaw | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChildren:
    """K candidates below every node of a frontier, draft ids; `law` as for the root."""

    scores: Tensor
    tokens: Tensor
    law: StepLaw | None


class Candidates(ABC):
    """`positions` are those of the roots: coins follow them, not the batch."""

    def __init__(self, topk: int, ops: TreeOps) -> None:
        self.topk = topk
        self.ops = ops

    @abstractmethod
    def root(self, logits_BV: Tensor, positions_B: Tensor, sampling: BatchSampling) -> RootChildren:
        """The first candidates of each request."""

    @abstractmethod
    def step(
        self, logits_RV: Tensor, positions_B: Tensor, sampling: BatchSampling, *, step: int
    ) -> StepChildren:
        """The candidates below a frontier; `step` counts draft forwards from 1."""


class Chosen(Candidates):
    """The most probable tokens; the tree then keeps the best of them by probability."""

    def root(self, logits_BV: Tensor, positions_B: Tensor, sampling: BatchSampling) -> RootChildren:
        scores, tokens = self.ops.choose_children(logits_BV, topk=self.topk)
        return RootChildren(scores=scores, tokens=tokens, law=None)

    def step(
        self, logits_RV: Tensor, positions_B: Tensor, sampling: BatchSampling, *, step: int
    ) -> StepChildren:
        scores, tokens = self.ops.choose_children(logits_RV, topk=self.topk)
        return StepChildren(scores=scores, tokens=tokens, law=None)


class Drawn(Candidates):
    """Tokens drawn from the draft's law; the tree's shape then follows the order of the draws."""

    def root(self, logits_BV: Tensor, positions_B: Tensor, sampling: BatchSampling) -> RootChildren:
        controls = sampling.controls
        coins_BK = self.ops.coins(controls.seeds, positions_B, Stream.DRAFT, lanes=self.topk)
        tokens, law = draw_root(
            logits_BV, controls, coins_BK, self.ops.draw_children, self.ops.truncate
        )
        scores = rank_scores(len(tokens), self.topk, device=tokens.device)
        return RootChildren(scores=scores, tokens=tokens, law=law)

    def step(
        self, logits_RV: Tensor, positions_B: Tensor, sampling: BatchSampling, *, step: int
    ) -> StepChildren:
        controls, lanes = sampling.controls, self.topk**2
        first = self.topk + (step - 1) * lanes
        coins_BL = self.ops.coins(
            controls.seeds, positions_B, Stream.DRAFT, lanes=lanes, first_lane=first
        )
        coins_RK = coins_BL.view(len(logits_RV), self.topk)
        tokens, law = draw_step(
            logits_RV, controls, coins_RK, self.ops.draw_children, self.ops.truncate
        )
        scores = rank_scores(len(tokens), self.topk, device=tokens.device)
        return StepChildren(scores=scores, tokens=tokens, law=law)
