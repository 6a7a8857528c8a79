"""Graphs: forwards as they are, or replayed on static buffers of the smallest fitting bucket.

A CPU has no graphs to capture. The replay here does everything else that a captured graph does
(engine.graphs.captured): the same buffers, the same copy-in and its checks, the same padding, one
set of outputs that the next replay overwrites, and a clone of the live rows. What breaks under a
graph breaks in a test.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor

from engine.errors import SizeError
from engine.sampling import DraftLaw
from shapecheck import Dims

Live = TypeVar("Live")
Out = TypeVar("Out")


class Buffers(Protocol):
    """What `engine.graphs.buffers` has in common."""

    @classmethod
    def allocate(cls, dims: Dims, rows: int, max_seq_len: int, device: torch.device) -> Self: ...

    def pad(self, live: int) -> None: ...

    def fill(self, live: object) -> None: ...

    def check(self, dims: Dims) -> None: ...

    def check_live(self, live: object) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphs:
    """Runs every forward as it is."""

    dims: Dims
    max_requests: int
    max_seq_len: int
    device: torch.device

    def wrap(self, forward: Callable[[Live], Out], buffers: type[Buffers]) -> Callable[[Live], Out]:
        """The callable to use in place of `forward`."""
        return forward


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed(Graphs):
    """Runs every forward on static buffers, one set for each bucket of batch sizes."""

    def wrap(self, forward: Callable[[Live], Out], buffers: type[Buffers]) -> Callable[[Live], Out]:
        doublings = (self.max_requests - 1).bit_length()
        sizes = [min(2**power, self.max_requests) for power in range(doublings + 1)]
        # The largest first: what it allocates is room enough for the others.
        buckets = [self._bucket(forward, buffers, size) for size in reversed(sizes)]
        return Runner(buckets[::-1])

    def _bucket(
        self, forward: Callable[[Live], Out], buffers: type[Buffers], size: int
    ) -> Bucket[Live, Out]:
        static = buffers.allocate(self.dims, size, self.max_seq_len, self.device)
        static.check(self.dims)
        return self.bucket(forward, static, size)

    def bucket(
        self, forward: Callable[[Live], Out], static: Buffers, size: int
    ) -> Bucket[Live, Out]:
        """How a bucket replays."""
        return Bucket(forward, static, size)


class Bucket(Generic[Live, Out]):
    """One batch size: its buffers, and outputs that every replay writes again."""

    def __init__(self, forward: Callable[[Live], Out], buffers: Buffers, size: int) -> None:
        self.forward = forward
        self.buffers = buffers
        self.size = size
        self.outputs: Out | None = None

    def __call__(self, live: Live, rows: int) -> Out:
        """The outputs of the live rows, cloned out of the static ones."""
        self.buffers.fill(live)
        if rows < self.size:
            self.buffers.pad(rows)
        self.buffers.check_live(live)
        self.replay()
        assert self.outputs is not None, "a replay leaves outputs"
        return _mapped(self.outputs, lambda out: out[: len(out) // self.size * rows].clone())

    def replay(self) -> None:
        """`outputs` are those of the buffers."""
        # The buffers have the fields of the live carrier, which is all the forward reads.
        fresh = self.forward(self.buffers)  # pyright: ignore[reportArgumentType]
        if self.outputs is None:
            self.outputs = fresh
            return
        for kept, new in zip(_tensors(self.outputs), _tensors(fresh), strict=True):
            kept.copy_(new)


class Runner(Generic[Live, Out]):
    """Chooses the smallest bucket that holds the batch; no requests run in the smallest one.

    The buckets come by size, the smallest first. Raises SizeError when no bucket holds the batch.
    """

    def __init__(self, buckets: list[Bucket[Live, Out]]) -> None:
        self.buckets = buckets

    def __call__(self, live: Live) -> Out:
        """What the forward gives for `live`, computed on padded rows."""
        rows = len(live.seq_lens)  # pyright: ignore[reportAttributeAccessIssue]
        for bucket in self.buckets:
            if bucket.size >= rows:
                return bucket(live, rows)
        largest = self.buckets[-1].size
        raise SizeError.of(
            f"a batch of {rows} requests, and the largest graph has {largest} rows; run fewer "
            "together or raise max_requests",
            expected=f"at most {largest}", found=rows, code="SHP401",
        )  # fmt: skip


def _tensors(outputs: object) -> list[Tensor]:
    values = [getattr(outputs, item.name) for item in dataclasses.fields(outputs)]  # type: ignore[arg-type]
    values = [value.probs if isinstance(value, DraftLaw) else value for value in values]
    return [value for value in values if isinstance(value, Tensor)]


def _mapped(outputs: Out, move: Callable[[Tensor], Tensor]) -> Out:
    moved: dict[str, Tensor | DraftLaw] = {}
    for item in dataclasses.fields(outputs):  # type: ignore[arg-type]
        value = getattr(outputs, item.name)
        if isinstance(value, DraftLaw):
            moved[item.name] = value.mapped(move)
        elif isinstance(value, Tensor):
            moved[item.name] = move(value)
        else:
            assert not dataclasses.is_dataclass(value), f"{item.name} would outlive its replay"
    return dataclasses.replace(outputs, **moved)  # type: ignore[type-var]
