"""Id domains: which vocabulary the values of an integer tensor count in.

argmax, topk and the like tag their result with the axis they ran over; the tag is kept for the
memory, so views and copies share it; arithmetic drops it. Indexing an axis of the other model's
vocabulary is SHP305.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from shapecheck.dims.vocabulary import Owner
from shapecheck.symbolic.evidence import Meeting
from shapecheck.symbolic.shape_env import expression, storage_key

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Ids:
    """The values are positions along the axis `name`."""

    name: str

    def __str__(self) -> str:
        return f"{self.name} ids"


@dataclass(frozen=True, slots=True)
class Offset:
    """The values lead from ids of `source` to ids of `target` when added to them."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"offsets from {self.source} to {self.target}"


Tag = Ids | Offset

_aten = torch.ops.aten
_POSITIONS = {  # operator -> (its axis argument, default axis, which result holds positions)
    _aten.argmax: (1, None, None),
    _aten.argmin: (1, None, None),
    _aten.argsort: (1, -1, None),
    _aten.topk: (2, -1, 1),
    _aten.sort: (1, -1, 1),
    _aten.max: (1, None, 1),
    _aten.min: (1, None, 1),
    _aten.multinomial: (None, -1, None),
}
_KEEP = {
    _aten.index, _aten.index_select, _aten.gather, _aten.cat, _aten.stack, _aten.where,
    _aten._to_copy, _aten.clone, _aten.repeat, _aten.masked_fill, _aten.embedding,
    _aten.repeat_interleave, _aten.copy, _aten.flip, _aten.roll, _aten._unsafe_view,
    _aten.take_along_dim, _aten.constant_pad_nd, _aten.masked_select,
}  # fmt: skip
_WRITE = {
    _aten.copy_, _aten.index_put_, _aten._index_put_impl_, _aten.scatter_, _aten.masked_scatter_,
}  # fmt: skip
_ARITHMETIC = {_aten.add, _aten.add_}
_INDEXED = {_aten.index, _aten.index_put_, _aten._index_put_impl_, _aten.index_put}
_LOOKED_UP = {_aten.embedding: (1, 0), _aten.gather: (2, None), _aten.index_select: (2, None)}
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
        func: torch._ops.OpOverload,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        result: object,
    ) -> None:
        """Check the ids that `func` looks up with, and tag its result."""
        packet = func.overloadpacket
        if packet in _POSITIONS:
            self._positions(packet, args, kwargs, result)
        elif packet in (_aten.arange, _aten.randint):
            self._range(args, result)
        elif packet in _ARITHMETIC:
            self._add(args, result)
        elif packet in _KEEP or packet in _WRITE:
            self._look_up(packet, args)
            self._keep(packet, args, result)

    def _positions(
        self, packet: object, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: object
    ) -> None:
        where, default, which = _POSITIONS[packet]
        axis = kwargs.get("dim", default)
        if where is not None and len(args) > where:
            axis = args[where]
        positions = result if which is None else _item(result, which)
        if not isinstance(axis, int) or not isinstance(positions, torch.Tensor):
            return
        name = self._axis_name(args[0], axis)
        if name is not None:
            self.tag(positions, Ids(name))

    def _range(self, args: tuple[Any, ...], result: object) -> None:
        # arange(end), arange(0, end), randint(high, size), randint(0, high, size)
        start = args[0] if len(args) > 1 and isinstance(args[1], int | torch.SymInt) else 0
        end = args[0] if start is not args[0] else args[1]
        if start != 0:
            return
        if isinstance(end, torch.SymInt) and isinstance(result, torch.Tensor):
            name = self.recorder.single_name(expression(end))
            if name is not None and self._is_vocabulary(name):
                self.tag(result, Ids(name))

    def _add(self, args: tuple[Any, ...], result: object) -> None:
        tags = [self.of(arg) for arg in args[:2] if isinstance(arg, torch.Tensor)]
        ids = [tag for tag in tags if isinstance(tag, Ids)]
        offsets = [tag for tag in tags if isinstance(tag, Offset)]
        if not isinstance(result, torch.Tensor):
            return
        mapped = bool(ids and offsets) and self._same(ids[0].name, offsets[0].source)
        self.tag(result, Ids(offsets[0].target) if mapped else None)

    def _keep(self, packet: object, args: tuple[Any, ...], result: object) -> None:
        sources = [arg for arg in _flat(args) if isinstance(arg, torch.Tensor)]
        if packet in (_aten.index, _aten.gather, _aten.index_select, _aten.embedding):
            sources = sources[:1]
        elif packet in _WRITE:
            # The indices are not what is written.
            sources = [sources[0], sources[-1]] if len(sources) > 1 else sources
        tags = {tag for source in sources if (tag := self.of(source)) is not None}
        self._meet(tags)
        into = args[0] if packet in _WRITE else result
        if isinstance(into, torch.Tensor) and into.dtype in _INTEGERS and tags:
            self.tag(into, tags.pop() if len(tags) == 1 else None)

    def _meet(self, tags: set[Tag]) -> None:
        names = sorted(tag.name for tag in tags if isinstance(tag, Ids))
        for left, right in zip(names, names[1:], strict=False):
            if self._conflict(left, right):
                self._add_finding(f"{left} ids meet {right} ids", left, right)

    def _look_up(self, packet: object, args: tuple[Any, ...]) -> None:
        if packet in _INDEXED:
            for axis, index in enumerate(args[1]):
                if index is not None:
                    self._check(index, args[0], axis)
        elif packet in _LOOKED_UP:
            position, axis = _LOOKED_UP[packet]
            self._check(
                args[position if packet is not _aten.embedding else 1],
                args[0],
                args[1] if axis is None else axis,
            )

    def _check(self, index: torch.Tensor, table: torch.Tensor, axis: int) -> None:
        tag = self.of(index)
        name = self._axis_name(table, axis)
        if isinstance(tag, Ids) and name is not None and self._conflict(tag.name, name):
            self._add_finding(f"{tag.name} ids index an axis of {name}", name, tag.name)

    def _conflict(self, left: str, right: str) -> bool:
        models = {Owner.TARGET, Owner.DRAFT}
        owners = {self.recorder.owners[left], self.recorder.owners[right]}
        return owners == models and not self._same(left, right)

    def _same(self, left: str, right: str) -> bool:
        return left == right or self.recorder.is_merged(left, right)

    def _is_vocabulary(self, name: str) -> bool:
        return self.recorder.owners[name] in (Owner.TARGET, Owner.DRAFT)

    def _axis_name(self, tensor: torch.Tensor, axis: int) -> str | None:
        if not tensor.dim():
            return None
        return self.recorder.single_name(expression(tensor.shape[axis]))

    def _add_finding(self, text: str, expected: str, found: str) -> None:
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
                origins=self.recorder.origins(operation.operands),
            )
        )


def _item(result: object, which: int) -> object:
    if isinstance(result, (tuple, list)) and len(result) > which:
        return result[which]
    return None


def _flat(args: tuple[Any, ...]) -> list[object]:
    flat: list[object] = []
    for arg in args:
        if isinstance(arg, (list, tuple)):
            flat += arg
        else:
            flat.append(arg)
    return flat
