"""A promise: what an annotation says of a field, a parameter or a result."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from shapecheck.diagnostics.model import Span
from shapecheck.dims.expr import Poly
from shapecheck.dims.vocabulary import Owner, lookup
from shapecheck.static.counts import count_symbol
from shapecheck.static.owners import DRAFT, TARGET, size_of_name
from shapecheck.static.symbols import Ownership, SizePoly, Step, Symbol
from shapecheck.static.values import DType, Size, Tensor, Value

# These widths are one model's hidden size, whatever the algorithm makes of it.
_MEANINGS = {"recurrent_hidden": ("hidden", DRAFT), "extend_hidden": ("hidden", TARGET)}
_OWNED_KINDS = {"heads", "kv_heads", "layers", "head_dim", "ffn"}


@dataclass(unsafe_hash=True, slots=True)
class Case:
    """One alternative: a tensor (`axes`) or a number (`size`), in one phase or in every."""

    axes: tuple[SizePoly | None, ...] | None = None
    size: SizePoly | None = None
    dtype: str = ""
    dtype_owner: str = ""
    phase: str = ""


@dataclass(unsafe_hash=True, slots=True)
class Promise:
    """What stands in an annotation; `kind` is the class that it names, `source` who says so."""

    span: Span
    source: str
    text: str
    owner: str = ""
    kind: ast.expr | None = None
    cases: tuple[Case, ...] = ()

    def in_phase(self, phase: str) -> tuple[Case, ...]:
        """The alternatives that hold in a phase; all of them where the phase is not known."""
        if not phase:
            return self.cases
        return tuple(case for case in self.cases if case.phase in ("", phase)) or self.cases

    def values(self, phase: str) -> list[Value]:
        """What may be read; nothing where it hangs on a phase that is not known."""
        cases = self.in_phase(phase)
        if len({case.phase for case in cases}) > 1:
            return []
        return [value for case in cases if (value := self._value(case)) is not None]

    def owned(self, owner: str, name: str) -> Ownership:
        """The owner with this promise as its evidence."""
        return Ownership(owner, f"{self.source} says that {name} is the {owner}'s", self.span)

    def _value(self, case: Case) -> Value | None:
        if case.axes is not None:
            dims = tuple(None if axis is None else self._size(axis) for axis in case.axes)
            trail = (Step("stated", self.text, self.span),)
            known = case.dtype or case.dtype_owner
            return Tensor(dims, dtype=DType(case.dtype, case.dtype_owner, trail) if known else None)
        return self._size(case.size) if case.size is not None else None

    def _size(self, poly: SizePoly) -> Size:
        """The size with this promise as its origin and as the evidence for its owner."""
        owned = {
            symbol: Poly.symbol(replace(symbol, owned=self.owned(symbol.owner, str(symbol))))
            for symbol in poly.symbols()
            if symbol.owner
        }
        return Size(poly.substitute(owned), (Step("stated", self.text, self.span),))


def size_named(name: str) -> SizePoly | None:
    """The size that a name of the vocabulary stands for, or None where it equals only itself."""
    known = lookup(name)
    if known is not None and known.owner in (Owner.TARGET, Owner.DRAFT):
        kind, owner = _MEANINGS.get(name, (_kind(name), str(known.owner)))
        return Poly.symbol(Symbol(kind, owner))
    count = count_symbol(name)
    return None if count is None else Poly.symbol(count)


def _kind(name: str) -> str:
    plain = name.removeprefix("target_").removeprefix("draft_")
    return plain if plain in _OWNED_KINDS else size_of_name(f"{plain}_size") or plain
