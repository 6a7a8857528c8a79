"""Alternatives, joins and the heap."""

from __future__ import annotations

import ast

from shapecheck.diagnostics.model import Span
from shapecheck.dims.expr import Poly
from shapecheck.static.guards import Guard
from shapecheck.static.heap import Heap, join_heaps
from shapecheck.static.symbols import Ownership, Symbol, owner_conflict
from shapecheck.static.unions import combine, join, union
from shapecheck.static.values import (
    MAX_ALTERNATIVES,
    UNKNOWN,
    Alternative,
    Const,
    DType,
    ObjectRef,
    Size,
    Tensor,
    Union,
    alternatives,
    plain_values,
)


def _guard(text: str = "x") -> Guard:
    return Guard.of(ast.parse(text, mode="eval").body, True)


def _size(owner: str, name: str = "hidden") -> Size:
    return Size(Poly.symbol(Symbol(name, owner)))


def test_join_keeps_the_guard_of_each_side() -> None:
    guard = _guard("flag")
    joined = join(Const(1), Const(2), guard)
    assert [(one.value, [str(g) for g in one.guards]) for one in alternatives(joined)] == [
        (Const(1), ["flag"]),
        (Const(2), ["not (flag)"]),
    ]


def test_join_of_equal_values_is_the_value() -> None:
    assert join(_size("draft"), _size("draft"), _guard()) == _size("draft")


def test_union_keeps_what_names_an_owner_when_there_is_too_much() -> None:
    many = [Alternative(Const(number)) for number in range(MAX_ALTERNATIVES + 3)]
    value = union([*many, Alternative(_size("draft"))])
    assert isinstance(value, Union)
    assert len(value.alternatives) == MAX_ALTERNATIVES
    assert _size("draft") in list(plain_values(value))
    assert UNKNOWN in list(plain_values(value))


def test_tensors_that_differ_in_dtype_alone_are_one_alternative() -> None:
    one = Tensor((_size("draft"),), dtype=DType("int32"))
    other = Tensor((_size("draft"),), dtype=DType("int64"))
    assert join(one, other) == Tensor((_size("draft"),))


def test_combine_leaves_out_contradicting_guards() -> None:
    guard = _guard("flag")
    left, right = join(Const(1), Const(2), guard), join(Const(10), Const(20), guard)
    seen: list[tuple[object, ...]] = []

    def note(pair: tuple[object, ...]) -> Const:
        seen.append(pair)
        return Const(0)

    combine(note, left, right)
    assert seen == [(Const(1), Const(10)), (Const(2), Const(20))]


def test_owner_conflict_needs_the_same_kind_of_size() -> None:
    draft, target = _size("draft").poly, _size("target").poly
    assert owner_conflict(draft, target)
    assert owner_conflict(draft * Poly.constant(3), target)
    assert not owner_conflict(draft, _size("target", "vocab").poly)
    assert not owner_conflict(draft, _size("").poly)
    assert not owner_conflict(draft, Poly.constant(3))
    assert not owner_conflict(draft + target, target)


def test_an_owner_is_equal_whatever_its_evidence() -> None:
    span = Span(path="a.py", line=1)
    assert Ownership("draft", "a name", span) == Ownership("draft", "a flag", None)


def _ref(made: bool) -> ObjectRef:
    return ObjectRef(None, None, Span(path="a.py", line=1) if made else None)


def test_heaps_join_what_was_written_since_they_parted() -> None:
    old, new = (_ref(False), "field"), (_ref(False), "other")
    heap = Heap()
    heap.put(old, Const(1))
    left, right = heap, heap.fork()
    left.put(old, Const(2))
    right.put(new, Const(3))
    joined = join_heaps(left, right, None)
    assert list(plain_values(joined.values[old])) == [Const(2), Const(1)]
    assert list(plain_values(joined.values[new])) == [UNKNOWN, Const(3)]


def test_an_object_made_on_one_path_is_whole_after_the_join() -> None:
    key = (_ref(True), "field")
    heap = Heap()
    left, right = heap, heap.fork()
    right.put(key, Const(3))
    assert join_heaps(left, right, None).values[key] == Const(3)


def test_a_fork_does_not_see_later_writes() -> None:
    key = (_ref(False), "field")
    heap = Heap()
    fork = heap.fork()
    heap.put(key, Const(1))
    assert key not in fork.values
