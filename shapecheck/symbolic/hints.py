"""The numbers behind the symbols: equal across owners, different within one, or plainly unequal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shapecheck.dims.parse import parse_shape
from shapecheck.dims.vocabulary import Owner, lookup, names
from shapecheck.errors import ShapecheckError

# Sizes of one small model; what only the config of a real pair says is taken from Dims.
_MODEL = {
    "hidden": 128, "vocab": 1000, "layers": 2, "heads": 8, "kv_heads": 2, "head_dim": 16, "ffn": 344,
}  # fmt: skip
_WIDTHS = ("hidden", "vocab", "heads", "kv_heads", "ffn")
_ROWS = 5
_ALGORITHM = {"num_steps": 6, "topk": _ROWS, "num_draft_tokens": _ROWS, "num_aux": 3}
_BATCH = {
    "bs": _ROWS, "padded_bs": 9, "tokens": 17, "req_rows": 19, "max_context": 96,
    "num_slots": 331, "dp_ranks": 2,
}  # fmt: skip
_PRIMES = (23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
_LAYERS = 2


class Setting(StrEnum):
    """Which numbers stand behind the symbols of one run."""

    EQUAL = "equal"
    DRAFT_WIDER = "draft wider"
    TARGET_WIDER = "target wider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A number for every name, and the names that are formulas of others.

    A number of 0 or 1 becomes a plain int, because a symbol would only pretend to be general;
    so do layer counts, which are loops.
    """

    numbers: Mapping[str, int]
    formulas: Mapping[str, str] = field(default_factory=dict[str, str])

    def is_symbol(self, name: str) -> bool:
        """Whether the name becomes a symbol of its own."""
        return (
            self.numbers[name] > 1 and name not in self.formulas and not name.endswith("_layers")
        )


def plan(
    known: Mapping[str, int | None],
    setting: Setting = Setting.EQUAL,
    overrides: Mapping[str, int] | None = None,
) -> Plan:
    """The numbers of one run; `known` are those of a real pair, empty for none.

    A name whose value in `known` is None has no number. Raises ShapecheckError for an override
    that is not in the vocabulary.
    """
    overrides = overrides or {}
    for name in overrides:
        if lookup(name) is None:
            raise ShapecheckError(f"hint for {name!r}: not in the vocabulary; declare it first")
    absent = {name for name, value in known.items() if value is None}
    given = {name: value for name, value in known.items() if value is not None}
    numbers = _model_numbers(given, setting) | _row_numbers(given, setting)
    formulas = _formulas(given, numbers, absent)
    _fill(numbers)
    numbers |= overrides
    for name, formula in formulas.items():
        numbers[name] = parse_shape(formula).axes[0].evaluate(numbers.__getitem__)
    kept = {name: number for name, number in numbers.items() if name not in absent}
    formulas = {name: text for name, text in formulas.items() if name not in overrides}
    return Plan(numbers=kept, formulas=formulas)


def _model_numbers(given: Mapping[str, int], setting: Setting) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for size, fallback in _MODEL.items():
        target = given.get(f"target_{size}", fallback)
        numbers[f"target_{size}"] = numbers[f"draft_{size}"] = target
        if size == "layers":
            numbers["target_layers"] = numbers["draft_layers"] = min(_LAYERS, target)
        elif size in _WIDTHS and setting is Setting.DRAFT_WIDER:
            numbers[f"draft_{size}"] *= 2
        elif size in _WIDTHS and setting is Setting.TARGET_WIDER:
            numbers[f"target_{size}"] *= 2
    return numbers


def _row_numbers(given: Mapping[str, int], setting: Setting) -> dict[str, int]:
    algorithm = {name: given.get(name, number) for name, number in _ALGORITHM.items()}
    numbers = {**_BATCH, **algorithm}
    if setting is not Setting.EQUAL:
        numbers["bs"] = numbers["num_draft_tokens"] + 2
        numbers["topk"] = numbers["topk"] if numbers["topk"] == 1 else numbers["bs"] + 1
        return numbers
    rows = max(2, numbers["num_draft_tokens"])
    numbers["bs"] = numbers["num_draft_tokens"] = rows
    if numbers["topk"] > 1:
        numbers["topk"] = rows
        if numbers["num_steps"] + 1 == rows:
            numbers["num_steps"] += 1
    return numbers


def _formulas(
    given: Mapping[str, int], numbers: Mapping[str, int], absent: set[str]
) -> dict[str, str]:
    chain = numbers["topk"] == 1
    formulas = {
        "extend_hidden": "target_hidden" if "num_aux" in absent else "num_aux*target_hidden",
        "recurrent_hidden": "draft_hidden",
        "accept_width": "num_steps+1",
    }
    if given and "num_aux" not in given:
        formulas["extend_hidden"] = "target_hidden"
    if chain:
        formulas["num_draft_tokens"] = "num_steps+1"
    if given.get("accept_width") not in (None, given.get("num_steps", -2) + 1):
        formulas["accept_width"] = "num_draft_tokens"
    return {name: text for name, text in formulas.items() if name not in absent}


def _fill(numbers: dict[str, int]) -> None:
    # Names a project declared itself get numbers that nothing else has.
    used = set(numbers.values())
    fresh = (prime for prime in _PRIMES if prime not in used)
    for name in names():
        if name not in numbers:
            twin = _twin(name)
            numbers[name] = numbers[twin] if twin in numbers else next(fresh, 101 + len(numbers))


def _twin(name: str) -> str:
    declared = lookup(name)
    if declared is not None and declared.owner is Owner.DRAFT:
        return name.replace("draft", "target", 1)
    return ""
