"""The numbers behind the symbols: equal across owners, different within one, or plainly unequal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shapecheck.dims.model import Dims
from shapecheck.dims.parse import parse_shape
from shapecheck.dims.vocabulary import Owner, lookup, names
from shapecheck.errors import ContractTextError, ShapecheckError

# Sizes of one small model; what only the config of a real pair says is taken from Dims.
_MODEL = {
    "hidden": 128,
    "vocab": 1000,
    "layers": 2,
    "heads": 8,
    "kv_heads": 2,
    "head_dim": 16,
    "ffn": 344,
}
_WIDTHS = ("hidden", "vocab", "heads", "kv_heads", "ffn")
# Without 7, which num_steps+1 is.
_PRIMES = (5, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89)
_CAPACITIES = {"max_context": 499, "num_slots": 997}
_LAYERS = 2
# Without a pair: EAGLE-3 with a tree, where every name of the vocabulary has a meaning.
_DERIVED = {
    "extend_hidden": "num_aux*target_hidden",
    "recurrent_hidden": "draft_hidden",
    "accept_width": "num_steps+1",
}
# Dims writes the origin of a derived size as `num_aux*target_hidden = 3*4096`.
_FORMULA = re.compile(r"(\S+) = ")


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
        return self.numbers[name] > 1 and name not in self.formulas and not name.endswith("_layers")

    def without_symbol(self) -> frozenset[str]:
        """The names that are plain ints or formulas."""
        return frozenset(name for name in self.numbers if not self.is_symbol(name))


def plan(
    dims: Dims | None,
    setting: Setting = Setting.EQUAL,
    overrides: Mapping[str, int] | None = None,
) -> Plan:
    """The numbers of one run, after those of a real pair if there is one.

    A name whose value in `dims` is None has no number. Raises ShapecheckError for an override
    that is not in the vocabulary.
    """
    overrides = overrides or {}
    for name in overrides:
        if lookup(name) is None:
            raise ShapecheckError(f"hint for {name!r}: not in the vocabulary; declare it first")
    known = {} if dims is None else {name: dims.get(name) for name in dims.names()}
    origins = {} if dims is None else {name: dims.origin(name) for name in dims.names()}
    absent = {name for name, value in known.items() if value is None}
    given = {name: value for name, value in known.items() if value is not None}
    numbers = _model_numbers(given, setting)
    taken = set(numbers.values())
    fresh = (prime for prime in _PRIMES if prime not in taken)
    numbers |= _row_numbers(given, setting, fresh)
    formulas = _formulas(origins, absent)
    _fill(numbers, fresh)
    numbers |= {name: int(number) for name, number in overrides.items()}
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


def _row_numbers(
    given: Mapping[str, int], setting: Setting, fresh: Iterator[int]
) -> dict[str, int]:
    # Rows and branches get numbers of their own: those of a real pair may be a head count too.
    width = next(fresh)
    bs = topk = width
    if setting is not Setting.EQUAL:
        bs, topk = next(fresh), next(fresh)
    chain = given.get("topk") == 1
    return {
        "num_draft_tokens": width,
        "num_steps": width - 1 if chain else width + 1,
        "topk": 1 if chain else topk,
        "num_aux": given.get("num_aux", 3),
        "bs": bs,
        **{name: next(fresh) for name in ("padded_bs", "tokens", "req_rows")},
        **_CAPACITIES,
    }


def _formulas(origins: Mapping[str, str], absent: set[str]) -> dict[str, str]:
    formulas = {} if origins else _DERIVED
    for name, origin in origins.items():
        written = _FORMULA.match(origin)
        if written is not None and _is_formula(written.group(1)):
            formulas = {**formulas, name: written.group(1)}
    return {name: text for name, text in formulas.items() if name not in absent}


def _is_formula(text: str) -> bool:
    try:
        return bool(parse_shape(text).names())
    except ContractTextError:
        return False


def _fill(numbers: dict[str, int], fresh: Iterator[int]) -> None:
    # The other names, and those a project declared, get numbers that nothing else has.
    for name in names():
        if name not in numbers:
            twin = _twin(name)
            numbers[name] = numbers[twin] if twin in numbers else next(fresh)


def _twin(name: str) -> str:
    declared = lookup(name)
    if declared is not None and declared.owner is Owner.DRAFT:
        return name.replace("draft", "target", 1)
    return ""
