"""Hypothesis strategies from contracts: pairs, carriers and arguments that keep what they promise.

Hypothesis is imported with this module alone; `shapecheck.testing` does not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TypeVar

from hypothesis import reject
from hypothesis import strategies as st

from shapecheck.dims.model import Dims
from shapecheck.dims.vocabulary import lookup
from shapecheck.errors import ShapecheckError
from shapecheck.made import NothingToIndexError
from shapecheck.spec import OptionalSpec, Spec, carrier_of, contract_of, roots, tensors_of
from shapecheck.testing import distinct_dims, make, make_arguments

__all__ = ["arguments", "carriers", "pairs", "rows"]

T = TypeVar("T")
# None, one, two, and odd counts: a batch is rarely a power of two.
ROW_COUNTS = (0, 1, 2, 3, 5, 7)


def pairs() -> st.SearchStrategy[Dims]:
    """Dims of a pair with pairwise distinct numbers; the draft is wider, or narrower."""
    return st.sampled_from(list(distinct_dims()))


def rows() -> st.SearchStrategy[int]:
    """A count of rows that batches really have: none, one, two, odd."""
    return st.sampled_from(ROW_COUNTS)


def carriers(
    cls: type[T], dims: Dims, *, phase: str | None = None, **sizes: int
) -> st.SearchStrategy[T]:
    """Carriers that keep their contract: any row counts, any Optional fields left out.

    `sizes` fixes per-call names. Raises ContractTextError when `cls` is not a carrier.
    """
    fields = carrier_of(cls).fields
    free = _free_names((field.spec for field in fields), phase, sizes)
    optional = [field.name for field in fields if isinstance(field.spec, OptionalSpec)]
    drawn = st.fixed_dictionaries({name: rows() for name in free})
    absent = st.sets(st.sampled_from(optional)) if optional else st.just(set[str]())

    def build(counts: dict[str, int], left_out: set[str], seed: int) -> T:
        known = {"bs": 1, **sizes, **counts}
        with _possible():
            return make(cls, dims, phase=phase, absent=left_out, seed=seed, **known)  # pyright: ignore[reportArgumentType]  # names of dims

    return st.builds(build, drawn, absent, _seeds())


def arguments(
    function: Callable[..., object],
    dims: Dims,
    *,
    given: Mapping[str, object] | None = None,
    **sizes: int,
) -> st.SearchStrategy[dict[str, object]]:
    """Keyword arguments for a function with a @contract; they agree on every per-call name.

    `given` holds arguments that the contract does not describe, `sizes` fixes per-call names.
    Raises ShapecheckError for a function without a contract.
    """
    contract = contract_of(function)
    if contract is None:
        raise ShapecheckError(
            f"arguments({getattr(function, '__qualname__', function)!r}): it has no @contract; "
            "decorate it, or write a strategy by hand"
        )
    spec = contract.spec
    free = _free_names((root for _, root in roots(spec)), spec.phase, sizes)
    drawn = st.fixed_dictionaries({name: rows() for name in free})

    def build(counts: dict[str, int], seed: int) -> dict[str, object]:
        known = {"bs": 1, **sizes, **counts}
        with _possible():
            return make_arguments(function, dims, given=given, seed=seed, **known)  # pyright: ignore[reportArgumentType]  # names of dims

    return st.builds(build, drawn, _seeds())


@contextmanager
def _possible() -> Generator[None]:
    """In the block counts that leave an index nothing to index are drawn anew."""
    try:
        yield
    except NothingToIndexError:
        reject()


def _seeds() -> st.SearchStrategy[int]:
    return st.integers(min_value=0, max_value=2**31 - 1)


def _free_names(specs: Iterable[Spec], phase: str | None, fixed: Mapping[str, int]) -> list[str]:
    """The names that bind per call and are not fixed, in a stable order."""
    found: set[str] = set()
    for spec in specs:
        for _, tensor, _ in tensors_of(spec, "", phase):
            found |= tensor.shape.names()
    per_call = {name for name in found if (known := lookup(name)) is not None and known.per_call}
    return sorted(per_call - set(fixed))
