"""Id domains: which vocabulary the values of an integer tensor count in.

argmax, topk and the like tag their result with the axis they ran over; the tag is kept for the
memory, so views and copies share it; arithmetic drops it. Indexing an axis of the other model's
vocabulary is SHP305.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch

from shapecheck.symbolic.attribution import NOWHERE, Site
from shapecheck.symbolic.evidence import Meeting
from shapecheck.symbolic.operands import tensors
from shapecheck.symbolic.shape_env import Operator, expression, storage_key

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Ids:
    """The values are positions along the axis `name`, which `since` and `site` say first."""

    name: str
    since: str = field(default="", compare=False)
    site: Site = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"{self.name} ids"

    def origin(self) -> tuple[str, Site]:
        """Where it is known from."""
        return (f"{self} since {self.since}" if self.since else str(self), self.site)


@dataclass(frozen=True, slots=True)
class Offset:
    """The values lead from ids of `source` to ids of `target` when added to them."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"offsets from {self.source} to {self.target}"


Tag = Ids | Offset

_aten = torch.ops.aten
# Operator -> its axis argument, the default axis, and which of several results holds positions.
_POSITIONS: dict[object, tuple[int | None, int | None, int | None]] = {
    _aten.argmax: (1, None, None),
    _aten.argmin: (1, None, None),
    _aten.argsort: (1, -1, None),
    _aten.topk: (2, -1, 1),
    _aten.sort: (1, -1, 1),
    _aten.max: (1, None, 1),
    _aten.min: (1, None, 1),
    _aten.multinomial: (None, -1, None),
}
# Operator -> the argument that looks up, and the argument with the axis it runs over (None: 0).
_LOOKUPS: dict[object, tuple[int, int | None]] = {
    _aten.embedding: (1, None),
    _aten.gather: (2, 1),
    _aten.index_select: (2, 1),
    _aten.scatter: (2, 1),
    _aten.scatter_: (2, 1),
}
_INDEXING: frozenset[object] = frozenset(
    {_aten.index, _aten.index_put, _aten.index_put_, _aten._index_put_impl_}
)
# The values of the result are those of the first argument.
_TAKES: frozenset[object] = frozenset(
    {_aten.index, _aten.gather, _aten.index_select, _aten.embedding}
)
# The values of the last argument go into the first.
_WRITES: frozenset[object] = frozenset(
    {_aten.copy_, _aten.index_put_, _aten._index_put_impl_, _aten.scatter_, _aten.masked_scatter_}
)
# The values of all arguments are in the result. Views share the memory and need no rule.
_KEEPS: frozenset[object] = frozenset(
    {
        _aten.cat, _aten.stack, _aten.where, _aten._to_copy, _aten.clone, _aten.repeat,
        _aten.masked_fill, _aten.repeat_interleave, _aten.copy, _aten.flip, _aten.roll,
        _aten.constant_pad_nd, _aten.masked_select, _aten.clamp, _aten.clamp_min, _aten.clamp_max,
    }
)  # fmt: skip
_RANGES: frozenset[object] = frozenset({_aten.arange, _aten.randint})
_SUMS: frozenset[object] = frozenset({_aten.add, _aten.add_})
_INTEGERS = (torch.int64, torch.int32)


@dataclass(slots=True)
class Domains:
    """The tags of one trace, by memory."""

    recorder: Recorder
    _tags: dict[int, Tag] = field(default_factory=dict[int, Tag])
    # Held so that an address is not reused; the memory of fake tensors is empty.
    _alive: dict[int, object] = field(default_factory=dict[int, object])

    def tag(self, tensor: torch.Tensor, tag: Tag | None) -> None:
        """Declare what the values of `tensor` are."""
        key, storage = storage_key(tensor)
        if tag is None:
            self._tags.pop(key, None)
            return
        self._tags[key] = tag
        self._alive[key] = storage

    def of(self, tensor: torch.Tensor) -> Tag | None:
        """What the values of `tensor` are known to be."""
        if tensor.dtype not in _INTEGERS:
            return None
        return self._tags.get(storage_key(tensor)[0])

    def follow(
        self,
        func: Operator,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        result: object,
    ) -> None:
        """Check the ids that `func` looks up with, and tag its result."""
        packet = func.overloadpacket
        self._look_up(packet, args)
        if packet in _POSITIONS:
            self._positions(packet, args, kwargs, result)
        elif packet in _RANGES:
            self._range(args, result)
        elif packet in _SUMS:
            self._sum(args, result)
        elif packet in _TAKES:
            self._pass_on(list(tensors(args))[:1], result)
        elif packet in _WRITES:
            parts = list(tensors(args))
            self._pass_on([parts[0], parts[-1]], parts[0])
        elif packet in _KEEPS:
            self._pass_on(list(tensors(args)), result)

    def _positions(
        self, packet: object, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: object
    ) -> None:
        where, default, which = _POSITIONS[packet]
        axis = kwargs.get("dim", default)
        if where is not None and len(args) > where:
            axis = args[where]
        positions = list(tensors(result))[which or 0 :]
        if not isinstance(axis, int) or not positions:
            return
        name = self._axis_name(args[0], axis)
        if name is not None:
            self.tag(positions[0], self._made(name))

    def _range(self, args: tuple[Any, ...], result: object) -> None:
        # arange(end), arange(0, end), randint(high, size), randint(0, high, size)
        limits = [arg for arg in args[:2] if isinstance(arg, int | torch.SymInt)]
        if len(limits) == 2 and limits[0] != 0:
            return
        name = self.recorder.single_name(expression(limits[-1])) if limits else None
        if name is not None and self.recorder.parties.is_model(name):
            for made in tensors(result):
                self.tag(made, self._made(name))

    def _sum(self, args: tuple[Any, ...], result: object) -> None:
        tags = [self.of(arg) for arg in tensors(args)]
        ids = [tag for tag in tags if isinstance(tag, Ids)]
        offsets = [tag for tag in tags if isinstance(tag, Offset)]
        mapped = bool(ids and offsets) and self._same(ids[0].name, offsets[0].source)
        for made in tensors(result):
            self.tag(made, self._made(offsets[0].target) if mapped else None)

    def _pass_on(self, sources: list[torch.Tensor], result: object) -> None:
        # One of each, the first: a set would forget which line said so.
        tags = dict.fromkeys(tag for source in sources if (tag := self.of(source)) is not None)
        found = sorted((tag for tag in tags if isinstance(tag, Ids)), key=lambda tag: tag.name)
        for left, right in pairwise(found):
            if self.conflict(left.name, right.name):
                origins = [left.origin(), right.origin()]
                self._report(f"{left} meet {right}", left.name, right.name, origins)
        for made in tensors(result):
            if tags and made.dtype in _INTEGERS:
                self.tag(made, next(iter(tags)) if len(tags) == 1 else None)

    def _look_up(self, packet: object, args: tuple[Any, ...]) -> None:
        if packet in _INDEXING:
            for axis, index in enumerate(args[1]):
                if index is not None:
                    self._check(index, args[0], axis)
        elif packet in _LOOKUPS:
            position, where = _LOOKUPS[packet]
            self._check(args[position], args[0], 0 if where is None else args[where])

    def _check(self, index: torch.Tensor, table: torch.Tensor, axis: int) -> None:
        tag = self.of(index)
        name = self._axis_name(table, axis)
        if isinstance(tag, Ids) and name is not None and self.conflict(tag.name, name):
            origins = [tag.origin(), *self.recorder.origins([table])]
            self._report(f"{tag} index an axis of {name}", name, tag.name, origins)

    def conflict(self, left: str, right: str) -> bool:
        """Whether the two are vocabularies of both models that nobody declared equal."""
        both = self.recorder.parties.are_both_models(left, right)
        return both and not self._same(left, right)

    def _same(self, left: str, right: str) -> bool:
        return left == right or self.recorder.is_merged(left, right)

    def _axis_name(self, tensor: torch.Tensor, axis: int) -> str | None:
        if not tensor.dim():
            return None
        return self.recorder.single_name(expression(tensor.shape[axis]))

    def _made(self, name: str) -> Ids:
        """Ids that the operation in progress makes."""
        operation = self.recorder.operation
        return Ids(name, operation.name, operation.site) if operation is not None else Ids(name)

    def _report(
        self, text: str, expected: str, found: str, origins: Sequence[tuple[str, Site]]
    ) -> None:
        operation = self.recorder.operation
        if operation is None:
            return
        self.recorder.add(
            Meeting(
                code="SHP305",
                text=text,
                names=frozenset({expected, found}),
                sides=(expected, found),
                site=operation.site,
                operation=operation.name,
                origins=tuple(origins),
            )
        )
