"""Odd requests: what nothing could be made of is refused, with what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from shapecheck import Dims, ShapecheckError, carrier, contract, indexes, phase
from shapecheck.symbolic import Trace, trace
from shapecheck.testing import distinct_dims, make, make_arguments

DIMS = distinct_dims().wider


@carrier
@dataclass
class State:
    hidden: Float[Tensor, "bs draft_hidden"]
    rows: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    extra: Float[Tensor, "bs tokens"] | None = None
    width: (
        Annotated[Float[Tensor, "bs topk"], phase("extend")]
        | Annotated[Float[Tensor, "padded_bs topk"], phase("decode")]
        | None
    ) = None


@dataclass
class Plain:
    rows: Tensor


class Worker:
    def __init__(self, dims: Dims) -> None:
        self.dims = dims

    @contract
    def step(self, rows: Int64[Tensor, "bs"], lens: Int64[Tensor, "bs"]) -> int:
        return 1


@contract
def paired(rows: Int64[Tensor, "bs"], lens: Int64[Tensor, "bs"]) -> int:
    return 1


def _plain(rows: Tensor) -> None: ...


Asked = Callable[[], object]
MADE: dict[str, tuple[Asked, str]] = {
    "a size in quotes": (lambda: make(State, DIMS, "3"), "bs='3': give a whole number"),
    "a size with a fraction": (lambda: make(State, DIMS, 3.0), "bs=3.0: give a whole number"),
    "no size": (lambda: make(State, DIMS, None), "bs=None: give a whole number"),
    "a truth value": (lambda: make(State, DIMS, True), "bs=True: give a whole number"),
    "a class without a contract": (lambda: make(Plain, DIMS), "put @carrier above its @dataclass"),
    "a class that is none": (lambda: make("State", DIMS), "'State' is no class; give a class"),
    "a carrier": (
        lambda: make(make(State, DIMS, tokens=1, phase="extend"), DIMS),
        "give the class State itself",
    ),
    "no dims": (lambda: make(State, None), "None is no Dims; give those of a pair"),
    "sizes for dims": (lambda: make(State, {"bs": 3}), "is no Dims; give those of a pair"),
    "a name that nothing has": (
        lambda: make(State, DIMS, num_slots=5),
        "num_slots: nothing is made of that size; correct the name (there is bs, draft_hidden,",
    ),
    "a size that dims have": (
        lambda: make(State, DIMS, draft_hidden=5),
        "give dims.with_sizes(draft_hidden=(..., 'why'))",
    ),
    "fields without values": (
        lambda: make(State, DIMS, fields=["hidden"]),
        "fields=['hidden']: give names with their values",
    ),
    "letters for absent": (lambda: make(State, DIMS, absent="extra"), "give a list of names"),
    "a device that is none": (lambda: make(State, DIMS, device="cud"), "give a device of this"),
    "a seed that is none": (lambda: make(State, DIMS, seed="x"), "and a whole number"),
    "a seed without an end": (lambda: make(State, DIMS, seed=2**70), "and a whole number"),
    "numbers for absent": (lambda: make(State, DIMS, absent=[1]), "absent has 1, no name"),
    "fields by number": (lambda: make(State, DIMS, fields={5: 1}), "fields has 5, no name"),
    "more than torch has room for": (
        lambda: make(State, DIMS, bs=2**62),
        f"State.hidden is [bs={2**62}, draft_hidden={DIMS['draft_hidden']}], which torch does not",
    ),
    "more than torch counts": (lambda: make(State, DIMS, bs=2**70), "give smaller sizes"),
    "arguments of no contract": (lambda: make_arguments(_plain, DIMS), "decorate it"),
    "arguments without dims": (lambda: make_arguments(paired, None), "None is no Dims; give"),
    "arguments of a name that nothing has": (
        lambda: make_arguments(paired, DIMS, tokens=3),
        "tokens: nothing is made of that size; correct the name (there is bs), or leave it out",
    ),
    "given without values": (
        lambda: make_arguments(paired, DIMS, given=["rows"]),
        "given=['rows']: give names with their values",
    ),
    "given by number": (
        lambda: make_arguments(paired, DIMS, given={5: 1, "rows": 2}),
        "given has 5, no name",
    ),
}
TRACED: dict[str, tuple[Callable[[Trace], object], str]] = {
    "a name that is none": (lambda t: t.make(State, tokns=3), "did you mean tokens?"),
    "a name that nothing has": (
        lambda t: t.make(State, num_slots=5),
        "num_slots: nothing is made of that size; correct the name (there is bs, draft_hidden,",
    ),
    "no size": (lambda t: t.make(State, bs=None), "bs=None: give a whole number"),
    "a size in a list": (lambda t: t.make(State, bs=[3]), "bs=[3]: give a whole number"),
    "a size in a tensor": (
        lambda t: t.make(State, bs=torch.tensor(3)),
        "give a whole number",
    ),
    "two axes": (lambda t: t.make(State, bs="bs topk"), "write it without spaces"),
    "no carrier": (lambda t: t.make(Plain), "put @carrier above its @dataclass"),
    "a call of a name that nothing has": (
        lambda t: t.call(paired, tokens=3),
        "tokens: nothing is made of that size",
    ),
    "a method without its object": (lambda t: t.call(Worker.step), "give its object"),
    "an object that nothing takes": (
        lambda t: t.call(Worker(t.dims).step, Worker(t.dims)),
        "give arguments by name",
    ),
    "a shape in parts": (lambda t: t.tensor(("bs", "topk")), "names of dims as one text"),
    "a shape in numbers": (lambda t: t.tensor(3), "names of dims as one text"),
    "a size in numbers": (lambda t: t.size(3), "names of dims as one text"),
    "less than nothing": (lambda t: t.tensor("topk-100"), "give sizes that leave none below 0"),
    "ids of no model": (
        lambda t: t.tensor("bs", torch.int64, ids="x"),
        "write 'target' or 'draft'",
    ),
    "ids that are floats": (lambda t: t.tensor("bs", ids="target"), "give torch.int64"),
    "ids of no tensor": (lambda t: t.ids(3, "target_vocab"), "give one of this trace"),
    "ids in a tensor of floats": (
        lambda t: t.ids(t.tensor("bs"), "target_vocab"),
        "holds no ids; give one of whole numbers",
    ),
    "ids along a number": (
        lambda t: t.ids(t.tensor("bs", torch.int64), 5),
        "5 is no name; write one such as 'target_vocab'",
    ),
    "a device that is none": (lambda t: t.tensor("bs", device="cud"), "give a device such as"),
    "a source of no folder": (lambda t: t.load(5, "x"), "load(5, 'x'): give a folder"),
    "offsets of no tensor": (
        lambda t: t.offset(3, "draft_vocab", "target_vocab"),
        "give one of this trace",
    ),
    "a config of no model": (lambda t: t.config({"hidden_size": 1}, "x"), "write 'target' or"),
    "an equality in numbers": (lambda t: t.allow(3, reason="x"), "write it as 'target_vocab =="),
    "an equality for no reason": (lambda t: t.allow("bs == topk", reason=None), "say why"),
}
STARTED: dict[str, tuple[Asked, str]] = {
    "a setting that is none": (lambda: trace(setting="wider"), "is one of equal, draft wider"),
    "hints without values": (lambda: trace(hints=["bs"]), "give names with their values"),
    "a hint in quotes": (lambda: trace(hints={"bs": "3"}), "bs='3': give a whole number"),
    "a hint below 0": (lambda: trace(hints={"bs": -1}), "give a size of 0 or more"),
    "a hint of no name": (lambda: trace(hints={"bss": 1}), "did you mean bs?"),
    "sizes for dims": (lambda: trace({"bs": 3}), "is no Dims; give those of a pair"),
    "a hint by number": (lambda: trace(hints={5: 5}), "hints has 5, no name"),
    "numbers for packages": (lambda: trace(within=[5]), "within has 5, no name"),
    "letters for packages": (lambda: trace(within="abc"), "within=['abc']"),
}


@pytest.mark.parametrize("name", MADE)
def test_what_nothing_can_be_made_of_is_refused(name: str) -> None:
    ask, said = MADE[name]
    with pytest.raises(ShapecheckError, match=re.escape(said)):
        ask()


@pytest.mark.parametrize("name", TRACED)
def test_what_a_trace_cannot_make_is_refused(name: str) -> None:
    ask, said = TRACED[name]
    with trace() as t, pytest.raises(ShapecheckError, match=re.escape(said)):
        ask(t)


@pytest.mark.parametrize("name", STARTED)
def test_a_trace_that_cannot_be_is_refused(name: str) -> None:
    ask, said = STARTED[name]
    with pytest.raises(ShapecheckError, match=re.escape(said)), ask():
        pass


def test_names_of_other_phases_and_of_what_is_left_out_may_be_given() -> None:
    made = make(State, DIMS, tokens=4, padded_bs=9, phase="extend", absent=["extra"])
    assert made.extra is None
    assert made.width.shape == (3, DIMS["topk"])
    with trace() as t:
        assert t.make(State, phase="extend", padded_bs="bs*topk", req_rows=5) is not None


def test_a_size_may_be_a_whole_number_of_numpy() -> None:
    with trace(hints={"bs": np.int64(3)}) as t:
        assert t.tensor("bs").shape[0] == 3
    assert make(State, DIMS, np.int64(3), tokens=1, phase="extend").rows.shape == (3,)
