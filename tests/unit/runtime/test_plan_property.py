"""The generated checks decide exactly as a search over all sizes does, on random contracts."""

import inspect
from dataclasses import make_dataclass
from itertools import product

import torch
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from jaxtyping import Float32
from torch import Tensor

from shapecheck import ContractTextError, Dims, ShapeContractError, carrier, contract
from shapecheck.dims import Owner, Size

NUMBERS = {"topk": 2, "num_steps": 3}
AXES = (
    "bs",
    "tokens",
    "topk",
    "num_steps",
    "bs*topk",
    "tokens*topk+1",
    "bs*tokens",
    "4",
    "num_steps-1",
)
LARGEST = 6
DIMS = Dims(
    sizes={
        name: Size(value=value, owner=Owner.ALGORITHM, origin="test")
        for name, value in NUMBERS.items()
    }
)

shapes = st.lists(st.sampled_from(AXES), min_size=1, max_size=3).map(" ".join)
fields = st.lists(st.tuples(shapes, st.booleans()), min_size=1, max_size=4)
# Most contracts bind both names plainly somewhere; without that many are refused as loose.
anchors = st.sampled_from([[("bs tokens", False)], [("tokens", False), ("bs", False)], []])


def fits(text: str, shape: tuple[int, ...], **names: int) -> bool:
    """Whether a shape is the text's, axis by axis, for these numbers."""
    axes = text.split()
    known = {**NUMBERS, **names}
    return len(axes) == len(shape) and all(
        eval(axis, {}, known) == size for axis, size in zip(axes, shape, strict=True)
    )


def accepted(parts: list[tuple[str, tuple[int, ...]]]) -> bool:
    """Whether some numbers of `bs` and `tokens` give every tensor the shape it has."""
    room = range(20)  # beyond the largest size that an axis of these tests can take
    return any(
        all(fits(text, shape, bs=bs, tokens=tokens) for text, shape in parts)
        for bs, tokens in product(room, room)
    )


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@given(drawn=fields, anchor=anchors, first=st.booleans(), result=shapes, data=st.data())
def test_the_plan_decides_as_a_search_does(
    drawn: list[tuple[str, bool]],
    anchor: list[tuple[str, bool]],
    first: bool,
    result: str,
    data: st.DataObject,
) -> None:
    given_fields = [*anchor, *drawn] if first else [*drawn, *anchor]
    hints = [
        (f"f{index}", Float32[Tensor, text] | None if optional else Float32[Tensor, text])
        for index, (text, optional) in enumerate(given_fields)
    ]
    try:
        made = carrier(make_dataclass("Made", hints))

        def step(it, out, dims):
            return out

        step.__annotations__ = {"it": made, "dims": Dims, "return": Float32[Tensor, result]}
        step.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
                for name in ("it", "out", "dims")
            ]
        )
        checked = contract(step)
    except ContractTextError:
        assume(False)
    numbers = {
        "bs": data.draw(st.integers(0, 3), label="bs"),
        "tokens": data.draw(st.integers(0, 3), label="tokens"),
    }
    parts: list[tuple[str, tuple[int, ...]]] = []
    values: list[Tensor | None] = []
    for text, optional in [*given_fields, (result, False)]:
        if optional and data.draw(st.booleans(), label="absent"):
            values.append(None)
            continue
        shape = [eval(axis, {}, {**NUMBERS, **numbers}) for axis in text.split()]
        spoil = data.draw(st.integers(0, 11), label="spoil")
        if spoil < len(shape):
            shape[spoil] += 1
        elif spoil == 11:
            shape = data.draw(st.lists(st.integers(0, LARGEST), max_size=3), label="shape")
        values.append(torch.zeros(shape))
        parts.append((text, tuple(shape)))
    *crossing, out = values
    try:
        checked(made(*crossing), out, DIMS)
    except ContractTextError:
        event("refused as a contract")  # an axis that cannot be solved is never half checked
    except ShapeContractError:
        event("refused")
        assert not accepted(parts)
    else:
        event("accepted")
        assert accepted(parts)
