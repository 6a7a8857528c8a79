"""DraftLaw: the law a draft token was really drawn from, made only by the sampler that drew it.
The one exception says that nothing was drawn.

Children of one node are drawn WITHOUT replacement: the second child from the first one's law with
that child's weight removed, and so on. Only the first law is kept, verification repeats the
removals. When a law has no weight left the next children are the most probable remaining tokens;
they are not drawn, and an exhausted law tells verification so.

B requests   K branching   N verify width, root included   R rows   Vd draft vocabulary
"""

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from typing import Annotated, Self

import torch
from jaxtyping import Float, Float32, Float64, Int64
from torch import Tensor

from engine.errors import LawError
from engine.sampling.controls import BatchControls
from engine.sampling.draw import draw_units
from engine.sampling.filters import Truncate, sampling_law, truncate
from engine.sampling.units import units
from shapecheck import carrier, contract, ids, invariant

Draw = Callable[[Tensor, Tensor, Tensor], Tensor]

_SEAL = object()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DraftLaw:
    """Probabilities over the draft's vocabulary; building one by hand raises LawError."""

    probs: Tensor
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise LawError.of(
                f"{type(self).__name__} is made by the sampler that drew the tokens: call "
                "draw_root or draw_step, or pass no law for candidates that were not drawn",
                expected="the sampler's seal",
                found=type(seal).__name__,
                code="SHP205",
            )

    @invariant
    def is_a_law(self) -> Tensor:
        """Every row sums to 1, or to 0 where nothing was drawn (padding)."""
        mass = self.probs.sum(dim=-1)
        return (((mass - 1.0).abs() < 1e-3) | (mass == 0.0)).all()

    def mapped(self, move: Callable[[Tensor], Tensor]) -> Self:
        """The same laws elsewhere: `move` copies rows, takes some or leaves them."""
        return type(self)(probs=move(self.probs), seal=_SEAL)

    def rows(self, index: Int64[Tensor, "bs"]) -> Self:
        """The laws of these requests, in this order."""
        return self.mapped(lambda probs: probs[index])

    @classmethod
    def merge(cls, laws: Sequence[Self]) -> Self:
        """The laws of several batches, one after the other."""
        return cls(probs=torch.cat([law.probs for law in laws]), seal=_SEAL)


@carrier
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RootLaw(DraftLaw):
    """The law the root's children were drawn from: what a DraftState carries."""

    probs: Float32[Tensor, "bs draft_vocab"]

    @classmethod
    def undrawn(cls, rows: int, vocab: int, *, device: torch.device) -> Self:
        """Rows from which nothing was drawn (idle, padding): no token of `vocab` has a weight."""
        return cls(probs=torch.zeros(rows, vocab, device=device), seal=_SEAL)


@carrier
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepLaw(DraftLaw):
    """The laws the children of one frontier were drawn from, request-major."""

    probs: Float32[Tensor, "bs*topk draft_vocab"]


@carrier
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeLaw(DraftLaw):
    """`probs[b, j]` is the law the CHILDREN of node j were drawn from, as logits row j judges them.

    A node without children has some row that nobody reads.
    """

    probs: Float32[Tensor, "bs num_draft_tokens draft_vocab"]

    @classmethod
    def assemble(
        cls,
        root: RootLaw,
        steps: Sequence[StepLaw],
        columns: Int64[Tensor, "bs num_draft_tokens"],
    ) -> Self:
        """The laws of the selected nodes; `columns` is `engine.tree.law_columns` of the tree."""
        rows, vocab = root.probs.shape
        # Sizes written out: -1 is ambiguous when an idle rank brings no rows.
        laws = [step.probs.view(rows, len(step.probs) // max(rows, 1), vocab) for step in steps]
        expanded_BGV = torch.cat([root.probs.unsqueeze(1), *laws], dim=1)
        index = columns.unsqueeze(2).expand(*columns.shape, vocab)
        return cls(probs=expanded_BGV.gather(1, index), seal=_SEAL)


@contract
def draw_root(
    logits: Float[Tensor, "bs draft_vocab"],
    controls: BatchControls,
    coins_BK: Float64[Tensor, "bs topk"],
    draw: Draw | None = None,
    truncate: Truncate = truncate,
) -> tuple[Annotated[Int64[Tensor, "bs topk"], ids("draft")], RootLaw]:
    """K children of the root under each request's own filters, and their law. Draft ids.

    `draw` and `truncate` stand in for draw_children and truncate.
    """
    tokens, probs = _draw_children(logits, controls, coins_BK, draw, truncate)
    return tokens, RootLaw(probs=probs, seal=_SEAL)


def draw_step(
    logits: Float[Tensor, "bs*topk draft_vocab"],
    controls: BatchControls,
    coins_RK: Float64[Tensor, "bs*topk topk"],
    draw: Draw | None = None,
    truncate: Truncate = truncate,
) -> tuple[Annotated[Int64[Tensor, "bs*topk topk"], ids("draft")], StepLaw]:
    """K children of every frontier node, and their laws. Draft ids, request-major rows.

    `draw` and `truncate` stand in for draw_children and truncate.
    """
    tokens, probs = _draw_children(logits, controls, coins_RK, draw, truncate)
    return tokens, StepLaw(probs=probs, seal=_SEAL)


def choose_children(
    logits_RV: Tensor, *, topk: int
) -> tuple[Tensor, Annotated[Tensor, ids("draft")]]:
    """The `topk` most probable tokens, f32 probabilities and i64 draft ids; nothing is drawn."""
    best = logits_RV.float().topk(topk, dim=-1)
    return (best.values - logits_RV.float().logsumexp(dim=-1, keepdim=True)).exp(), best.indices


def draw_children(law_RV: Tensor, logits_RV: Tensor, coins_RK: Tensor) -> Tensor:
    """K tokens (R, K) i64 of each row, drawn one after the other without those before them.

    Once nothing of the law is left, the best remaining logit is chosen.
    """
    left_RU = units(law_RV)
    tokens = [draw_units(left_RU, coins_RK[:, 0])]
    unseen_RV = logits_RV
    for rank in range(1, coins_RK.shape[1]):
        last_R1 = tokens[-1].unsqueeze(1)
        left_RU = left_RU.scatter(1, last_R1, 0)
        unseen_RV = unseen_RV.scatter(1, last_R1, -torch.inf)
        drawn_R = draw_units(left_RU, coins_RK[:, rank])
        exhausted_R = left_RU.sum(dim=1) == 0
        tokens.append(torch.where(exhausted_R, unseen_RV.argmax(dim=1), drawn_R))
    return torch.stack(tokens, dim=1)


def _draw_children(
    logits_RV: Tensor,
    controls: BatchControls,
    coins_RK: Tensor,
    draw: Draw | None,
    truncate: Truncate,
) -> tuple[Tensor, Tensor]:
    rows, vocab = logits_RV.shape
    requests = len(controls.seeds)
    per_request = rows // requests if requests else 0
    logits_BRV = logits_RV.view(requests, per_request, vocab)
    law_RV = sampling_law(logits_BRV, controls, truncate).flatten(0, 1)
    return (draw or draw_children)(law_RV, logits_RV, coins_RK), law_RV
