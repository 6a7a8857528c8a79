"""Row counts and widths: which names count requests, tokens or the tokens of one request.

| unit | names | letter |
|---|---|---|
| per request | `bs`, `raw_bs`, `batch_size`, `num_reqs`, `num_seqs`, `num_requests` | R |
| width of a verify row | `num_draft_tokens`, `draft_token_num`, `num_verify_tokens` | N |
| draft depth | `num_steps`, `spec_steps` | S |
| proposed tokens | `num_speculative_tokens` | K |
| branching | `topk` | topk |
| tokens | `num_tokens`, `num_input_tokens` (padded) | T |

A prefix `max_` makes a capacity, `padded_` a padded count: the unit stays, as it does behind
`speculative_` and the name of a published method (`eagle_topk`, `mtp_num_draft_tokens`). R*N,
R*(S+1) and R*(K+1) stay different unless `topk == 1` holds, where N is S+1. A number, an unknown
name and a plain token count equal everything: they never conflict.
"""

from __future__ import annotations

import math
from functools import lru_cache

from shapecheck.dims.expr import Poly
from shapecheck.static.symbols import SizePoly, Symbol

REQUESTS = "R"
TOKENS = "T"
WIDTHS = ("N", "S", "K", "topk")
_UNITS = {
    "bs": REQUESTS,
    "raw_bs": REQUESTS,
    "batch_size": REQUESTS,
    "num_reqs": REQUESTS,
    "num_seqs": REQUESTS,
    "num_requests": REQUESTS,
    "num_draft_tokens": "N",
    "draft_token_num": "N",
    "num_verify_tokens": "N",
    "num_steps": "S",
    "spec_steps": "S",
    "num_speculative_tokens": "K",
    "topk": "topk",
    "num_tokens": TOKENS,
    "num_input_tokens": TOKENS,
}
# A count stays what it is under the name of the method that it belongs to.
_METHODS = ("speculative_", "eagle_", "medusa_", "mtp_", "ngram_")
_ALWAYS_PADDED = {"num_input_tokens"}
_PER_REQUEST = {"reqs", "requests", "seq_lens", "req_pool_indices", "seq_lens_cpu"}
_STATES = {"max_": "cap", "padded_": "padded", "capture_": "padded", "graph_": "padded"}
_COUNT = "count"


@lru_cache(maxsize=65536)
def unit_of_name(name: str) -> tuple[str, str]:
    """The unit letter and the state (`live`, `padded`, `cap`) of a name, or two empty texts."""
    plain, state = name.lstrip("_"), "live"
    for prefix, meaning in _STATES.items():
        if plain.startswith(prefix):
            plain, state = plain[len(prefix) :], meaning
            break
    if plain.endswith("_padded"):
        plain, state = plain.removesuffix("_padded"), "padded"
    if plain in _ALWAYS_PADDED:
        state = "padded"
    for method in _METHODS:
        plain = plain if plain in _UNITS else plain.removeprefix(method)
    unit = _UNITS.get(plain, "")
    return (unit, state) if unit else ("", "")


def count_symbol(name: str) -> Symbol | None:
    """The symbol of a count by its name, or None when the name counts nothing known."""
    unit, state = unit_of_name(name)
    return Symbol(name, "", f"{_COUNT}:{unit}:{state}:{name}") if unit else None


def rows_of_tensor(name: str) -> Symbol | None:
    """The rows of a tensor or list whose name says what it holds one of for each request."""
    if name.lstrip("_") in _PER_REQUEST:
        return Symbol(f"len({name})", "", f"{_COUNT}:{REQUESTS}:live:{name}")
    return None


def units_of(poly: SizePoly, *, single_branch: bool = False) -> SizePoly | None:
    """The polynomial with every count replaced by its unit letter; None when one is unknown.

    With `single_branch` (`topk == 1`) N is S+1 and topk is 1.
    """
    values: dict[Symbol, SizePoly] = {}
    for symbol in poly.symbols():
        kind, _, rest = symbol.key.partition(":")
        if kind != _COUNT:
            return None
        letter = rest.split(":", 1)[0]
        if letter == TOKENS:
            return None
        if single_branch and letter == "N":
            values[symbol] = Poly.symbol(Symbol("S")) + Poly.constant(1)
        elif single_branch and letter == "topk":
            values[symbol] = Poly.constant(1)
        else:
            values[symbol] = Poly.symbol(Symbol(letter))
    return poly.substitute(values)


def rounded_up(poly: SizePoly) -> SizePoly | None:
    """The count after a bucket rounded it up, in the unit that it had; None for no count."""
    padded: dict[Symbol, SizePoly] = {}
    for symbol in poly.symbols():
        kind, _, rest = symbol.key.partition(":")
        if kind != _COUNT:
            return None
        unit, _, name = rest.split(":", 2)
        if unit in (REQUESTS, TOKENS):
            key = f"{_COUNT}:{unit}:padded:{name}"
            padded[symbol] = Poly.symbol(Symbol(f"padded({symbol.name})", "", key))
    return poly.substitute(padded) if padded else None


def misdivides(rows: SizePoly, by: SizePoly, *, single_branch: bool = False) -> bool:
    """Whether requests times a width are divided by a width that is surely another."""
    one = units_of(rows, single_branch=single_branch)
    other = units_of(by, single_branch=single_branch)
    if one is None or other is None or _degree(other) != 0 or not other.symbols():
        return False
    width = one.divide(Poly.symbol(Symbol(REQUESTS))) if one.terms else None
    if width is None or not width.symbols() or _degree(width) != 0:
        return False
    return width != other and width.divide(other) is None


def is_padded_tokens(poly: SizePoly) -> bool:
    """Whether it is a count of tokens that a graph's bucket rounded up."""
    symbol = poly.as_symbol()
    return symbol is not None and symbol.key.startswith(f"{_COUNT}:{TOKENS}:padded:")


def is_exact_capacity(poly: SizePoly) -> bool:
    """Whether it is what the largest live batch needs and no more: requests times a width."""
    units = units_of(poly)
    if units is None or _degree(units) != 1 or state_of(poly) != "cap":
        return False
    return any(symbol.name in WIDTHS for symbol in units.symbols())


def state_of(poly: SizePoly) -> str:
    """`cap` or `padded` when any count of it is, else `live`."""
    states = {
        symbol.key.split(":")[2] for symbol in poly.symbols() if symbol.key.startswith(_COUNT)
    }
    return "cap" if "cap" in states else "padded" if "padded" in states else "live"


def rows_conflict(left: SizePoly, right: SizePoly, *, single_branch: bool = False) -> bool:
    """Whether two axes are surely counts of different units."""
    one = units_of(left, single_branch=single_branch)
    other = units_of(right, single_branch=single_branch)
    if one is None or other is None or not one.symbols() or not other.symbols():
        return False
    return one != other and _degree(one) == _degree(other) is not None


def one_batch(poly: SizePoly) -> SizePoly:
    """The rows of one batch where several of them lie side by side: `2*bs` is a count of requests
    too, since two batches in hand have their sizes under one name.
    """
    if _degree(units_of(poly) or poly) != 1:
        return poly
    factor = math.gcd(*(coefficient for _, coefficient in poly.terms))
    return poly.divide(Poly.constant(factor)) or poly


def _degree(poly: SizePoly) -> int | None:
    """1 for rows (every term has one R), 0 for a width (no term has any), else None."""
    requests = {sum(symbol.name == REQUESTS for symbol in mono) for mono, _ in poly.terms}
    return requests.pop() if len(requests) == 1 and requests <= {0, 1} else None


def exceeds(bound: SizePoly, capacity: SizePoly) -> bool:
    """Whether a bound counts more tokens of each request than a buffer has rows for."""
    one, other = units_of(bound), units_of(capacity)
    if one is None or other is None:
        return False
    if _degree(one) == _degree(other) == 1 and any(s.name in WIDTHS for s in other.symbols()):
        more = one_batch(one) - one_batch(other)
        return bool(more.terms) and all(number > 0 for _, number in more.terms)
    quotient = one.divide(other) if other.terms else None
    if quotient is None or not quotient.symbols():
        return False
    return {symbol.name for symbol in other.symbols()} == {REQUESTS} and not any(
        symbol.name == REQUESTS for symbol in quotient.symbols()
    )
