"""Graph buffers pair with the live carrier by name, and a copy is never skipped."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import torch
from jaxtyping import Float, Float32, Int32, Int64
from torch import Tensor

from shapecheck import (
    ContractTextError,
    Dims,
    ShapeContractError,
    carrier,
    contract,
    dtype,
    graph_buffers,
)

from .conftest import pair_dims


@carrier
@dataclass(slots=True)
class Live:
    hidden: Annotated[Float[Tensor, "bs target_hidden"], dtype("target")]
    lens: Int64[Tensor, "bs"]
    probs: Float32[Tensor, "bs topk"] | None = None
    step: int = 0


@graph_buffers(live=Live)
@dataclass(slots=True)
class Buffers:
    hidden: Annotated[Float[Tensor, "padded_bs target_hidden"], dtype("target")]
    lens: Int64[Tensor, "padded_bs"]
    probs: Float32[Tensor, "padded_bs topk"] | None = None


@carrier
@dataclass(slots=True)
class SharedLive:
    rows: Int64[Tensor, "bs"]
    lens: Int64[Tensor, "bs"]


@graph_buffers(live=SharedLive)
@dataclass(slots=True)
class SharedBuffers:
    rows: Int64[Tensor, "padded_bs"]
    lens: Int64[Tensor, "padded_bs"]


@pytest.fixture
def dims() -> Dims:
    return pair_dims(target=8, draft=4)


def live(bs: int = 3, width: int = 8, kind: torch.dtype = torch.bfloat16) -> Live:
    return Live(torch.ones(bs, width, dtype=kind), torch.arange(bs))


def buffers(rows: int = 4, width: int = 8) -> Buffers:
    return Buffers(
        torch.zeros(rows, width, dtype=torch.bfloat16), torch.full((rows,), -1, dtype=torch.int64)
    )


def refused(made: object, crossing: object) -> ShapeContractError:
    with pytest.raises(ShapeContractError) as caught:
        made.fill(crossing)  # type: ignore[attr-defined]  # attached by the decorator
    assert caught.value.diagnostic.code == "SHP401"
    return caught.value


def test_fill_copies_the_live_rows_and_leaves_the_rest() -> None:
    made = buffers()
    made.fill(live())
    assert made.lens.tolist() == [0, 1, 2, -1]
    assert made.hidden.sum(dim=1).tolist() == [8, 8, 8, 0]
    made.fill(live(bs=4))
    assert made.lens.tolist() == [0, 1, 2, 3]


def test_fill_keeps_the_static_addresses() -> None:
    made = buffers()
    before = made.hidden.data_ptr()
    made.fill(live())
    assert made.hidden.data_ptr() == before


def test_live_rows_are_those_filled_in_until_somebody_writes_them(level) -> None:
    level("full")
    made, crossing = buffers(), live()
    made.fill(crossing)
    made.lens[3:].zero_()
    made.hidden[3:] = float("nan")
    made.check_live(crossing)
    made.lens[1:].zero_()
    with pytest.raises(ShapeContractError, match=r"SHP206 Buffers\.check_live, field lens"):
        made.check_live(crossing)


def test_two_buffers_of_one_memory_are_found_before_a_replay(level) -> None:
    level("full")
    ids = torch.zeros(4, dtype=torch.int64)
    made = SharedBuffers(rows=ids, lens=ids)
    crossing = SharedLive(rows=torch.arange(3), lens=torch.ones(3, dtype=torch.int64))
    made.fill(crossing)
    with pytest.raises(ShapeContractError, match="field rows"):
        made.check_live(crossing)


@pytest.mark.parametrize("name", ["off", "warn", "strict"])
def test_live_rows_are_read_at_full_only(level, name: str) -> None:
    level(name)
    made, crossing = buffers(), live()
    made.fill(crossing)
    made.lens.zero_()
    made.check_live(crossing)
    assert made.lens.tolist() == [0, 0, 0, 0]


def test_a_width_of_the_other_model_is_the_documented_error() -> None:
    error = refused(buffers(width=4), live())
    assert str(error) == (
        "SHP401 Buffers.fill, field hidden\n"
        "  buffer bfloat16[4, 4] on cpu      live bfloat16[3, 8] on cpu\n"
        "  dim 1: the buffer has 4 (target_hidden)\n"
        "         the live carrier has 8 (target_hidden)\n"
        "  size the buffer from the same name of Dims as the live carrier"
    )


def test_nothing_is_copied_when_one_pair_differs() -> None:
    made = buffers(width=4)
    refused(made, live())
    assert made.lens.tolist() == [-1] * 4


def test_capacity_rank_and_dtype() -> None:
    assert "room for 4 rows, 5 are live" in str(refused(buffers(), live(bs=5)))
    assert "dtype differs" in refused(buffers(), live(kind=torch.float16)).diagnostic.message
    flat = live()
    flat.hidden = flat.hidden.flatten()
    assert "rank differs" in refused(buffers(), flat).diagnostic.message


@pytest.mark.parametrize("name", ["off", "warn", "strict"])
@pytest.mark.parametrize("side", ["buffers", "live"])
def test_a_missing_partner_raises_at_every_level(level, side: str, name: str) -> None:
    level(name)
    made, crossing = buffers(), live()
    owner = made if side == "buffers" else crossing
    owner.probs = torch.zeros(4 if side == "buffers" else 3, 2)
    assert "field probs" in str(refused(made, crossing))


def test_a_field_that_one_class_lacks() -> None:
    @graph_buffers(live=Live)
    @dataclass
    class Fewer:
        hidden: Annotated[Float[Tensor, "padded_bs target_hidden"], dtype("target")]

    assert "the buffer holds None" in str(refused(Fewer(buffers().hidden), live()).diagnostic)


def test_capture_checks_the_buffers_and_their_declared_partners(dims: Dims) -> None:
    buffers().check(dims)
    uneven = buffers()
    uneven.lens = uneven.lens[:3]
    with pytest.raises(ShapeContractError, match="padded_bs is 4"):
        uneven.check(dims)
    with pytest.raises(ShapeContractError, match="4 is draft_hidden"):
        buffers(width=4).check(dims)


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[Float[Tensor, "padded_bs draft_hidden"], dtype("target")],
        Annotated[Float[Tensor, "padded_bs target_hidden"], dtype("draft")],
        Annotated[Float[Tensor, "padded_bs topk target_hidden"], dtype("target")],
        Float32[Tensor, "padded_bs target_hidden"],
    ],
)
def test_capture_refuses_another_declaration(dims: Dims, annotation: object) -> None:
    @graph_buffers(live=Live)
    @dataclass
    class Other:
        hidden: annotation  # type: ignore[valid-type]
        lens: Int64[Tensor, "padded_bs"]
        probs: Float32[Tensor, "padded_bs topk"] | None = None

    made = Other(torch.zeros(4, 8), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(ShapeContractError, match=r"SHP401 .*field hidden"):
        made.check(dims)


def test_capture_refuses_a_field_without_partner(dims: Dims) -> None:
    @graph_buffers(live=Live)
    @dataclass
    class More:
        hidden: Annotated[Float[Tensor, "padded_bs target_hidden"], dtype("target")]
        lens: Int64[Tensor, "padded_bs"]
        extra: Int32[Tensor, "padded_bs"]

    made = More(buffers().hidden, buffers().lens, torch.zeros(4, dtype=torch.int32))
    with pytest.raises(ShapeContractError, match="has no such field; the other says Int32"):
        made.check(dims)


def test_off_still_copies(level) -> None:
    level("off")
    made = buffers()
    made.fill(live())
    assert made.lens.tolist() == [0, 1, 2, -1]
    with pytest.raises(RuntimeError):
        buffers(width=4).fill(live())


def test_warn_logs_and_still_copies(level, caplog) -> None:
    level("warn")
    made = buffers()
    made.fill(live(kind=torch.float16))
    assert made.hidden[:3].sum() == 24
    assert "SHP401 Buffers.fill, field hidden" in caplog.text


def test_buffers_cross_as_carriers(dims: Dims) -> None:
    @contract(phase="decode")
    def replay(made: Buffers, dims: Dims) -> None: ...

    replay(buffers(), dims)
    with pytest.raises(ShapeContractError, match=r"made\.hidden"):
        replay(buffers(width=4), dims)


def test_nested_carriers_pair_by_path() -> None:
    @carrier
    @dataclass
    class Outer:
        inner: Live
        scale: Float32[Tensor, ""] | None = None

    @graph_buffers
    @dataclass
    class Static:
        inner: Buffers
        scale: Float32[Tensor, ""] | None = None

    made = Static(buffers(), torch.zeros(()))
    made.fill(Outer(live(), torch.ones(())))
    assert made.inner.lens.tolist() == [0, 1, 2, -1]
    assert made.scale is not None
    assert made.scale.item() == 1
    assert "field inner.hidden" in str(refused(Static(buffers(width=4)), Outer(live())))


def test_a_list_has_no_buffer() -> None:
    @graph_buffers
    @dataclass
    class Listed:
        parts: list[Int64[Tensor, "padded_bs"]]

    with pytest.raises(ContractTextError, match="has no static buffer to pair with"):
        Listed([]).fill(live())


def test_filling_from_what_is_no_carrier_is_refused() -> None:
    with pytest.raises(ContractTextError, match="dict is not a carrier"):
        buffers().fill({})


@pytest.mark.parametrize("side", ["buffer", "live"])
@pytest.mark.parametrize("other", [[1, 2], 3])
def test_what_is_no_tensor_is_refused(side: str, other: object) -> None:
    into, given = buffers(), live()
    (into if side == "buffer" else given).lens = other  # type: ignore[assignment]  # on purpose
    with pytest.raises(ShapeContractError, match=r"SHP401 Buffers\.fill, field lens"):
        into.fill(given)
