"""Every row of the error format, and that a failure reads no data."""

import os
import pickle
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest
import torch
from jaxtyping import Bool, Float, Float32, Int32, Int64
from torch import Tensor

from shapecheck import Dims, ShapecheckError, ShapeContractError, carrier, contract, dtype, phase
from shapecheck.diagnostics import DimPair
from shapecheck.diagnostics.concise import render_concise


@carrier
@dataclass(slots=True)
class DraftExtendInput:
    hidden_states: Annotated[Float[Tensor, "tokens target_hidden"], dtype("target")]
    input_ids: Int64[Tensor, "tokens"]
    recurrent: Annotated[Float[Tensor, "tokens recurrent_hidden"], dtype("draft")] | None = None


def batch(
    hidden: Tensor | None = None, ids: Tensor | None = None, recurrent: Tensor | None = None
) -> DraftExtendInput:
    return DraftExtendInput(
        hidden_states=torch.zeros(12, 4096, dtype=torch.bfloat16) if hidden is None else hidden,
        input_ids=torch.zeros(12, dtype=torch.int64) if ids is None else ids,
        recurrent=recurrent,
    )


def worker(dims: Dims | None):
    class DraftWorker:
        def __init__(self) -> None:
            self.dims = dims

        @contract(phase="draft_extend")
        def forward_draft_extend(
            self, batch: DraftExtendInput, steps: int = 1
        ) -> Int64[Tensor, "tokens"]:
            return batch.input_ids

    return DraftWorker()


def failure(dims: Dims, *args: object, **kwargs: object) -> ShapeContractError:
    with pytest.raises(ShapeContractError) as caught:
        worker(dims).forward_draft_extend(*args, **kwargs)
    return caught.value


def test_wrong_owner_is_the_documented_text(dims: Dims) -> None:
    error = failure(dims, batch(torch.zeros(12, 2048, dtype=torch.bfloat16)))
    assert str(error) == (
        "SHP201 DraftWorker.forward_draft_extend (phase draft_extend), "
        "argument batch.hidden_states\n"
        "  expected bfloat16[tokens=12, target_hidden=4096]      got bfloat16[12, 2048] on cpu\n"
        "  dim 1: target_hidden is 4096 (hidden_size in target/config.json)\n"
        "         2048 is draft_hidden  (hidden_size in draft/config.json)\n"
        "  the draft_extend phase carries the target's output; "
        "this tensor was sized from the draft's config"
    )
    assert error.diagnostic.name == "wrong-owner"
    assert error.diagnostic.dims == DimPair(expected="target_hidden", found="draft_hidden")
    assert error.diagnostic.cell == "DraftWorker.forward_draft_extend(batch)"


def test_the_message_is_complete_on_one_line(dims: Dims) -> None:
    error = failure(dims, batch(torch.zeros(12, 2048, dtype=torch.bfloat16)))
    assert render_concise(error.diagnostic) == (
        "SHP201 DraftWorker.forward_draft_extend (phase draft_extend), "
        "argument batch.hidden_states: dim 1 target_hidden is 4096, got 2048 (draft_hidden)"
    )


def test_an_error_is_a_type_error_that_pickles(dims: Dims) -> None:
    error = failure(dims, batch(torch.zeros(12, 2048, dtype=torch.bfloat16)))
    assert isinstance(error, TypeError)
    assert isinstance(error, ShapecheckError)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.diagnostic) == (str(error), error.diagnostic)


def test_a_size_that_no_name_has(dims: Dims) -> None:
    error = failure(dims, batch(torch.zeros(12, 33, dtype=torch.bfloat16)))
    assert str(error).splitlines()[2:] == [
        "  dim 1: target_hidden is 4096 (hidden_size in target/config.json)",
        "         33 is no other size known here",
        "  the draft_extend phase carries the target's target_hidden: size this tensor from Dims",
    ]


def test_another_size_of_the_same_owner(dims: Dims) -> None:
    error = failure(dims, batch(torch.zeros(12, 128, dtype=torch.bfloat16)))
    assert "128 is target_vocab" in str(error)
    assert str(error).endswith(
        "both are sizes of the target: another of its widths was taken for target_hidden"
    )


def test_rows_that_differ_name_the_field_that_bound_them(dims: Dims) -> None:
    error = failure(dims, batch(ids=torch.zeros(11, dtype=torch.int64)))
    assert str(error) == (
        "SHP201 DraftWorker.forward_draft_extend (phase draft_extend), argument batch.input_ids\n"
        "  expected int64[tokens=12]      got int64[11] on cpu\n"
        "  dim 0: tokens is 12 (bound by argument batch.hidden_states)\n"
        "         11 is no other size known here\n"
        "  every tensor of this call that says tokens has the same number there"
    )


def test_wrong_rank_shows_both_shapes(dims: Dims) -> None:
    error = failure(dims, batch(torch.zeros(12, 4096, 1, dtype=torch.bfloat16)))
    assert error.diagnostic.code == "SHP201"
    assert "expected bfloat16[tokens, target_hidden=4096]      got bfloat16[12, 4096, 1]" in str(
        error
    )
    assert "the contract has 2 axes, this tensor has 3" in str(error)


def test_the_other_models_dtype_is_dtype_owner(dims: Dims) -> None:
    error = failure(dims, batch(torch.zeros(12, 4096, dtype=torch.float16)))
    assert error.diagnostic.code == "SHP304"
    assert "  dtype: the target's dtype is bfloat16, got float16\n" in str(error)


def test_an_exact_dtype_is_exact(dims: Dims) -> None:
    error = failure(dims, batch(ids=torch.zeros(12, dtype=torch.int32)))
    assert error.diagnostic.code == "SHP207"
    assert "expected int64[tokens=12]      got int32[12] on cpu" in str(error)


def test_two_wrong_axes_are_both_explained(dims: Dims) -> None:
    @contract
    def scores(
        p: Float32[Tensor, "bs topk"], index: Int64[Tensor, "bs topk"], dims: Dims
    ) -> None: ...

    with pytest.raises(ShapeContractError) as caught:
        scores(torch.zeros(3, 2), torch.zeros(4, 5, dtype=torch.int64), dims)
    text = str(caught.value)
    assert "dim 0: bs is 3" in text
    assert "dim 1: topk is 2" in text
    assert "5 is num_steps (argument num_steps)" in text


def test_a_product_explains_its_factors(dims: Dims) -> None:
    @contract(phase="verify")
    def verify(
        seq_lens: Int64[Tensor, "bs"], ids: Int64[Tensor, "bs*num_draft_tokens"], dims: Dims
    ) -> None: ...

    with pytest.raises(ShapeContractError) as caught:
        verify(torch.zeros(3, dtype=torch.int64), torch.zeros(18, dtype=torch.int64), dims)
    assert (
        "  dim 0: bs*num_draft_tokens is 21 (bs=3, bound by argument seq_lens; "
        "num_draft_tokens=7, argument num_draft_tokens)\n" in str(caught.value)
    )


def test_an_idle_tensor_of_another_rank_or_dtype_is_idle_differs(dims: Dims) -> None:
    rank = failure(dims, batch(torch.zeros(0, dtype=torch.bfloat16)))
    assert rank.diagnostic.code == "SHP203"
    kind = failure(
        dims,
        batch(torch.zeros(0, 4096, dtype=torch.float16), torch.zeros(0, dtype=torch.int64)),
    )
    assert kind.diagnostic.code == "SHP203"
    assert str(kind).endswith(
        "an idle placeholder keeps the rank and dtype of the live tensor; only its rows are 0"
    )


def test_an_idle_tensor_of_another_width_is_wrong_owner(dims: Dims) -> None:
    error = failure(
        dims,
        batch(torch.zeros(0, 2048, dtype=torch.bfloat16), torch.zeros(0, dtype=torch.int64)),
    )
    assert error.diagnostic.code == "SHP201"
    assert "2048 is draft_hidden" in str(error)


def test_a_tensor_this_pair_does_not_have(dims: Dims) -> None:
    error = failure(dims, batch(recurrent=torch.zeros(12, 2048, dtype=torch.float16)))
    assert str(error).splitlines()[1:] == [
        "  expected None      got float16[12, 2048] on cpu",
        "  recurrent_hidden has no number (standalone carries no hidden states)",
        "  this pair carries no such tensor: leave the field None",
    ]


def test_another_phases_shape_is_wrong_phase(dims: Dims) -> None:
    @carrier
    @dataclass
    class SpecInfo:
        hidden_states: (
            Annotated[Float32[Tensor, "bs target_hidden"], phase("extend")]
            | Annotated[Float32[Tensor, "bs draft_hidden"], phase("decode")]
        )
        seq_lens: Int64[Tensor, "bs"]

    @contract(phase="extend")
    def extend(info: SpecInfo, dims: Dims) -> None: ...

    lens = torch.zeros(3, dtype=torch.int64)
    extend(SpecInfo(torch.zeros(3, 4096), lens), dims)
    with pytest.raises(ShapeContractError) as caught:
        extend(SpecInfo(torch.zeros(3, 2048), lens), dims)
    assert caught.value.diagnostic.code == "SHP202"
    assert str(caught.value).endswith(
        "the shape and dtype are exactly those of phase decode: this field was filled for it"
    )
    with pytest.raises(ShapeContractError) as caught:
        extend(SpecInfo(torch.zeros(3, 2047), lens), dims)
    assert caught.value.diagnostic.code == "SHP201"


def test_none_and_foreign_classes_are_named_by_class_alone(dims: Dims) -> None:
    missing = failure(dims, None)
    assert str(missing).splitlines()[1] == "  expected DraftExtendInput      got None"
    foreign = failure(dims, batch(np.zeros((12, 4096))))  # type: ignore[arg-type]  # on purpose
    assert foreign.diagnostic.code == "SHP205"
    assert "got numpy.ndarray" in str(foreign)


def test_a_plain_hint_is_enforced(dims: Dims) -> None:
    error = failure(dims, batch(), steps="two")
    assert str(error) == (
        "SHP205 DraftWorker.forward_draft_extend (phase draft_extend), argument steps\n"
        "  expected int      got str\n"
        "  pass what the annotation says, or change the annotation"
    )


def test_the_return_is_named(dims: Dims) -> None:
    class Worker:
        def __init__(self) -> None:
            self.dims = dims

        @contract
        def step(self, ids: Int64[Tensor, "bs"]) -> Bool[Tensor, "bs topk"]:
            return torch.zeros(3, 3, dtype=torch.bool)

    with pytest.raises(ShapeContractError, match=r"Worker\.step, return\n"):
        Worker().step(torch.zeros(3, dtype=torch.int64))


def test_list_elements_are_named_by_index(dims: Dims) -> None:
    @contract
    def merge(batches: list[DraftExtendInput], dims: Dims) -> None: ...

    bad = batch(torch.zeros(12, 2048, dtype=torch.bfloat16))
    with pytest.raises(ShapeContractError, match=r"argument batches\[1\]\.hidden_states"):
        merge([batch(), bad], dims)


def test_without_dims_the_message_says_so() -> None:
    class Table:
        @contract
        def merge(
            self, one: Float32[Tensor, "bs topk"], two: Float32[Tensor, "bs topk"]
        ) -> None: ...

    with pytest.raises(ShapeContractError) as caught:
        Table().merge(torch.zeros(3, 2), torch.zeros(3, 4))
    assert "  no Dims was in reach, so topk was bound by this call alone\n" in str(caught.value)


def test_rank_and_process_are_named_when_distributed(dims: Dims, tmp_path: object) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1
    )
    try:
        error = failure(dims, batch(torch.zeros(12, 2048, dtype=torch.bfloat16)))
    finally:
        torch.distributed.destroy_process_group()
    assert str(error).splitlines()[-2] == f"  rank 0 of 1, process {os.getpid()}"


class Untouchable(Tensor):
    """Data that may not be read: any repr, item, bool, conversion or copy fails the test."""

    def _touched(self, *_args: object, **_kwargs: object) -> object:
        raise AssertionError("a failing check touched the data")

    __repr__ = __str__ = __format__ = __bool__ = __int__ = __float__ = _touched  # type: ignore[assignment]
    item = tolist = numpy = cpu = __getitem__ = _touched  # type: ignore[assignment]

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name != "__get__":
            raise AssertionError(f"a failing check called {name}")
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize(
    "broken",
    [
        lambda t: batch(t(torch.zeros(12, 2048, dtype=torch.bfloat16))),
        lambda t: batch(t(torch.zeros(12, 4096, dtype=torch.float16))),
        lambda t: batch(t(torch.zeros(12, dtype=torch.bfloat16))),
        lambda t: batch(ids=t(torch.zeros(11, dtype=torch.int64))),
        lambda t: batch(recurrent=t(torch.zeros(12, 2048))),
        lambda t: t(torch.zeros(3)),
    ],
    ids=["width", "dtype", "rank", "rows", "absent", "class"],
)
def test_no_data_is_read_on_failure(dims: Dims, broken) -> None:
    wrap = lambda tensor: tensor.as_subclass(Untouchable)  # noqa: E731
    error = failure(dims, broken(wrap))
    assert error.diagnostic.code


def test_no_data_is_read_on_success(dims: Dims) -> None:
    good = batch()
    good.hidden_states = good.hidden_states.as_subclass(Untouchable)
    good.input_ids = good.input_ids.as_subclass(Untouchable)
    assert worker(dims).forward_draft_extend(good) is good.input_ids


@pytest.mark.parametrize("value", [lambda t: t, lambda t: [t], lambda t: {"a": (t,)}])
def test_no_tensor_is_shown_by_beartype(dims: Dims, value) -> None:
    @contract
    def step(
        ids: Int64[Tensor, "bs"], lens: Int32[Tensor, "bs"], counts: dict[str, int]
    ) -> None: ...

    data = torch.zeros(3).as_subclass(Untouchable)
    with pytest.raises(ShapeContractError, match="argument counts"):
        step(
            torch.zeros(3, dtype=torch.int64),
            torch.zeros(3, dtype=torch.int32),
            value(data),
        )
