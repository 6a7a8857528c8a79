"""Speculation: the algorithm and its sizes, checked against each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shapecheck.dims.config_file import shown
from shapecheck.errors import ShapecheckError

Algorithm = Literal["standalone", "eagle", "eagle3", "mtp", "ngram", "none"]
ALGORITHMS: tuple[Algorithm, ...] = ("standalone", "eagle", "eagle3", "mtp", "ngram", "none")

# Far beyond any real draft; a typo such as num_steps=4096 must not size a tree.
_MAX_DEPTH = 1024
_MAX_WIDTH = 65536
_MAX_RANKS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Sizes that the algorithm chooses; `verify_origin` says where num_draft_tokens comes from."""

    algorithm: Algorithm
    num_steps: int
    topk: int
    num_draft_tokens: int
    verify_origin: str
    num_aux: int | None
    tp: int
    draft_tp: int

    @property
    def has_draft(self) -> bool:
        """Whether a draft model takes part at all."""
        return self.algorithm not in ("ngram", "none")

    @property
    def feeds_hidden(self) -> bool:
        """Whether target hidden states cross the extend phase into the draft."""
        return self.algorithm in ("eagle", "eagle3", "mtp")


def speculation(
    *,
    algorithm: str,
    num_steps: int,
    topk: int = 1,
    num_draft_tokens: int | None = None,
    num_aux: int | None = None,
    tp: int = 1,
    draft_tp: int | None = None,
) -> Speculation:
    """The checked sizes of one algorithm; raises ShapecheckError naming the argument and remedy."""
    if algorithm not in ALGORITHMS:
        raise fault(
            f"algorithm {shown(algorithm)} is not known: choose one of {', '.join(ALGORITHMS)}"
        )
    plain = algorithm == "none"
    _bounded("num_steps", num_steps, 0 if plain else 1, 0 if plain else _MAX_DEPTH)
    _bounded("topk", topk, 1, 1 if plain else _MAX_DEPTH)
    _bounded("tp", tp, 1, _MAX_RANKS)
    if num_aux is not None:
        _bounded("num_aux", num_aux, 1, _MAX_DEPTH)
        if algorithm != "eagle3":
            raise fault(
                f"num_aux={num_aux} with algorithm {algorithm}: only eagle3 reads several target "
                "layers; leave num_aux out, or choose eagle3"
            )
    if num_draft_tokens is None and topk > 1:
        raise fault(
            f"topk={topk} drafts a tree and leaves its verify width open: give num_draft_tokens "
            f"(2 to {_widest(algorithm, num_steps, topk)}, root included)"
        )
    width = num_steps + 1 if num_draft_tokens is None else num_draft_tokens
    _check_width(algorithm, num_steps, topk, width)
    if draft_tp is not None:
        _bounded("draft_tp", draft_tp, 1, _MAX_RANKS)
    return Speculation(
        algorithm=algorithm,
        num_steps=num_steps,
        topk=topk,
        num_draft_tokens=width,
        verify_origin=f"num_steps+1 = {num_steps}+1"
        if num_draft_tokens is None
        else "argument num_draft_tokens",
        num_aux=num_aux,
        tp=tp,
        draft_tp=tp if draft_tp is None else draft_tp,
    )


def _widest(algorithm: Algorithm, num_steps: int, topk: int) -> int:
    if algorithm == "ngram":
        return _MAX_WIDTH
    return min(1 + topk + (num_steps - 1) * topk**2, _MAX_WIDTH)


def _check_width(algorithm: Algorithm, num_steps: int, topk: int, width: int) -> None:
    if algorithm == "none":
        _bounded("num_draft_tokens", width, 1, 1)
        return
    widest = _widest(algorithm, num_steps, topk)
    _bounded("num_draft_tokens", width, 2, _MAX_WIDTH)
    if algorithm != "ngram" and topk == 1 and width != num_steps + 1:
        raise fault(
            f"num_draft_tokens={width} with topk=1 and num_steps={num_steps}: a chain "
            f"verifies its root and every step; set it to {num_steps + 1} or leave it out"
        )
    if topk > 1 and algorithm != "ngram" and width > widest:
        raise fault(
            f"num_draft_tokens={width} is more than the tree has nodes: "
            f"1+topk+(num_steps-1)*topk^2 = {widest} with topk={topk} and num_steps={num_steps}; "
            "lower it, or raise num_steps or topk"
        )


def _bounded(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        span = f"{low}" if low == high else f"a whole number from {low} to {high}"
        raise fault(f"{name} is {shown(value)}: set it to {span}")


def fault(what: str) -> ShapecheckError:
    """The error for sizes that contradict each other; `what` ends in the remedy."""
    return ShapecheckError(f"SHP204 pair-mismatch: {what}")
