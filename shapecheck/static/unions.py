"""Several possible values as one: guarded alternatives, merged, joined and combined."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from shapecheck.static.guards import Guard
from shapecheck.static.values import (
    MAX_ALTERNATIVES,
    UNKNOWN,
    Alternative,
    Instance,
    Items,
    Mapping,
    Plain,
    Sequence,
    Size,
    Tensor,
    Union,
    Value,
    alternatives,
)

_MAX_COMPARED = 64  # comparing each with each is quadratic in the returns of a function


def union(choices: Iterable[Alternative]) -> Value:
    """The choices as one value: equal ones merged, the six that say most kept."""
    kept: list[Alternative] = []
    for choice in choices:
        value = choice.value
        for position, known in enumerate(kept):
            mine = known.value
            merged = mine if mine is value else _merged(mine, value)
            if merged is not None:
                if known.guards:
                    shared = tuple(guard for guard in known.guards if guard in choice.guards)
                    kept[position] = Alternative(merged, shared)
                elif merged is not mine:
                    kept[position] = Alternative(merged)
                break
        else:
            if len(kept) < _MAX_COMPARED:
                kept.append(choice)
    if len(kept) > MAX_ALTERNATIVES:
        telling = sorted(kept, key=lambda one: not _names_owner(one.value))
        kept = [*telling[: MAX_ALTERNATIVES - 1], Alternative(UNKNOWN)]
    if not kept:
        return UNKNOWN
    if len(kept) == 1 and not kept[0].guards:
        return kept[0].value
    return Union(tuple(kept))


def _merged(left: Plain, right: Plain) -> Plain | None:
    """One value for both, when they differ in nothing that a size depends on."""
    mine, theirs = type(left), type(right)
    if mine is theirs and left == right:
        return left
    if mine is Items or theirs is Items:
        return _gathered(left, right)
    if not (isinstance(left, Tensor) and isinstance(right, Tensor)):
        return _both_entries(left, right) if mine is theirs is Mapping else None
    if (left.dims, left.last) != (right.dims, right.last):
        return None
    ids = left.ids if left.ids == right.ids else None
    return Tensor(left.dims, left.last, None, left.owned or right.owned, ids)


def _both_entries(left: Plain, right: Plain) -> Plain | None:
    """One dict for two that say nothing different of any key: an entry may not be there yet."""
    if not (isinstance(left, Mapping) and isinstance(right, Mapping)):
        return None
    mine, theirs = left.items(), right.items()
    if mine is None or theirs is None:
        return None
    if any(theirs.get(key, value) != value for key, value in mine.items()):
        return None
    both = mine | theirs
    return Mapping(tuple(both.values()), tuple(both))


def _gathered(left: Plain, right: Plain) -> Plain | None:
    """One list for two of which at least one has an unknown length."""
    choices: dict[Value, None] = {}
    for one in (left, right):
        if not isinstance(one, (Sequence, Items)):
            return None
        choices.update(dict.fromkeys(one.items if isinstance(one, Sequence) else one.choices))
    return Items(tuple(choices)) if len(choices) <= MAX_ALTERNATIVES else None


def _names_owner(value: Plain) -> bool:
    if isinstance(value, Size):
        return any(symbol.owner for symbol in value.poly.symbols())
    if isinstance(value, Tensor):
        axes = value.dims if value.dims is not None else (value.last,)
        return any(axis is not None and _names_owner(axis) for axis in axes)
    return isinstance(value, Instance)


def join(left: Value, right: Value, guard: Guard | None = None) -> Value:
    """Either value: `left` under the guard, `right` under its negation."""
    if left is right or (type(left) is type(right) and left == right):
        return left
    ours = (guard,) if guard else ()
    theirs = (guard.negated(),) if guard else ()
    return union([*_under(left, ours), *_under(right, theirs)])


def _under(value: Value, guards: tuple[Guard, ...]) -> list[Alternative]:
    """The alternatives of a value, each under these guards as well."""
    if not isinstance(value, Union):
        return [Alternative(value, guards)]
    return [Alternative(one.value, _and(one.guards, guards)) for one in value.alternatives]


def lift(function: Callable[[Plain], Value], value: Value) -> Value:
    """`function` of every alternative, joined under the alternatives' guards."""
    if not isinstance(value, Union):
        return function(value)
    results: list[Alternative] = []
    for choice in value.alternatives:
        made = function(choice.value)
        if isinstance(made, Union):
            results += [
                Alternative(one.value, _and(choice.guards, one.guards)) for one in made.alternatives
            ]
        else:
            results.append(Alternative(made, choice.guards))
    return union(results)


def combine(
    function: Callable[[tuple[Plain, ...]], Value],
    *values: Value,
    under: list[Guard] | None = None,
) -> Value:
    """`function` of every combination of alternatives, a dozen at most.

    `under` holds the guards of the path; those of the combination are added while it runs.
    """
    plain = tuple(value for value in values if not isinstance(value, Union))
    if len(plain) == len(values):
        return function(plain)
    results: list[Alternative] = []
    for choices in product(*(alternatives(value) for value in values)):
        guards = tuple(dict.fromkeys(guard for choice in choices for guard in choice.guards))
        if _contradicts((*(under or ()), *guards)):
            continue
        depth = len(under) if under is not None else 0
        if under is not None:
            under.extend(guards)
        result = function(tuple(choice.value for choice in choices))
        if under is not None:
            del under[depth:]
        results.extend(
            Alternative(one.value, tuple(dict.fromkeys((*guards, *one.guards))))
            for one in alternatives(result)
        )
        if len(results) > MAX_ALTERNATIVES * 2:
            break
    return union(results)


def _contradicts(guards: tuple[Guard, ...]) -> bool:
    senses: dict[str, bool] = {}
    return any(senses.setdefault(guard.identity, guard.sense) != guard.sense for guard in guards)


def _and(left: tuple[Guard, ...], right: tuple[Guard, ...]) -> tuple[Guard, ...]:
    if not left or not right:
        return left or right
    return left + tuple(guard for guard in right if guard not in left)
