"""Dims: reading, refusing, copying, and the journey to another process."""

from __future__ import annotations

import copy
import pickle

import pytest
from pydantic import ValidationError

from shapecheck import Dims, ShapecheckError, ShapeContractError
from shapecheck.dims import Owner, Size

CONFIG = {"hidden_size": 64, "vocab_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2}


@pytest.fixture
def dims() -> Dims:
    return Dims.from_configs(
        CONFIG, {**CONFIG, "hidden_size": 32}, algorithm="standalone", num_steps=2
    )


def test_reading(dims: Dims) -> None:
    assert dims["target_hidden"] == 64
    assert dims.get("draft_hidden") == 32
    assert dims.get("extend_hidden") is None
    assert "extend_hidden" in dims
    assert "num_slots" not in dims
    assert dims.owner("num_slots") is Owner.BATCH
    assert dims.same_number(256) == ["target_vocab", "draft_vocab"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("target_hiden", "did you mean target_hidden?"),
        ("wholly_new", "declare('wholly_new', owner="),
        ("num_slots", "dims.with_sizes(num_slots="),
        ("extend_hidden", "a field of this width must be None"),
    ],
)
def test_a_missing_number_says_where_to_set_it(dims: Dims, name: str, hint: str) -> None:
    with pytest.raises(ShapecheckError, match=name) as caught:
        dims[name]
    assert hint in str(caught.value)


def test_with_sizes_leaves_the_original(dims: Dims) -> None:
    more = dims.with_sizes(num_slots=(128, "argument kv_slots"))
    assert (more["num_slots"], more.origin("num_slots")) == (128, "argument kv_slots")
    assert dims.get("num_slots") is None
    assert more != dims


def test_with_sizes_refuses(dims: Dims) -> None:
    with pytest.raises(ShapecheckError, match="0 or more"):
        dims.with_sizes(num_slots=(-1, "argument kv_slots"))
    with pytest.raises(ShapecheckError, match="did you mean"):
        dims.with_sizes(num_slot=(1, "argument kv_slots"))


def test_nothing_can_be_written(dims: Dims) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        dims.target_dtype = "float16"
    with pytest.raises(TypeError, match="does not support item assignment"):
        dims.sizes["bs"] = Size(value=1, owner=Owner.BATCH, origin="here")  # type: ignore[index]


def test_copies_are_equal(dims: Dims) -> None:
    for again in (
        pickle.loads(pickle.dumps(dims)),
        copy.copy(dims),
        copy.deepcopy(dims),
        Dims.model_validate_json(dims.model_dump_json()),
    ):
        assert again == dims
        assert hash(again) == hash(dims)
        assert again["target_hidden"] == 64
        assert again.origin("target_hidden") == dims.origin("target_hidden")


def test_a_copy_with_changes_is_checked_and_has_its_own_numbers(dims: Dims) -> None:
    sizes = dims.with_sizes(target_hidden=(99, "test")).sizes
    copied = dims.model_copy(update={"sizes": sizes})
    assert (copied["target_hidden"], dims["target_hidden"]) == (99, 64)
    deep = dims.model_copy(update={"target_dtype": "float64"}, deep=True)
    assert (deep.target_dtype, dims.target_dtype) == ("float64", "float32")
    assert dims.model_copy() == dims
    with pytest.raises(ShapeContractError, match="not in the vocabulary"):
        dims.model_copy(update={"sizes": {"nothing": Size(value=1, owner=Owner.DRAFT, origin="")}})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"target_dtype": {}}, "Dims: target_dtype: .*string"),
        ({"draft_dtype": 3}, "Dims: draft_dtype: .*string"),
        ({"sizes": {"topk": {"value": -1, "owner": "draft", "origin": ""}}}, "Dims: sizes.topk"),
        ({"rank": 1}, "Dims: rank"),
    ],
)
def test_what_is_no_size_is_a_broken_contract(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ShapeContractError, match=f"(?s)SHP201 {said}"):
        Dims(**{"sizes": {}, **fields})


def test_a_subclass_stays_one_through_copies(dims: Dims) -> None:
    class Wider(Dims):
        rank: int = 0

    wider = Wider(**dict(dims), rank=3)
    later = wider.with_sizes(topk=(4, "test"))
    assert (type(later), later.rank, later["topk"]) == (Wider, 3, 4)
    rebuild, given = wider.__reduce__()
    assert rebuild(*given) == wider


@pytest.mark.parametrize(
    "given", [(True, "x"), (3.0, "x"), (3.5, "x"), ("12", "x"), (-1, "x"), 12, (1, 2, 3), (1, 2)]
)
def test_what_is_no_size_is_refused(dims: Dims, given: object) -> None:
    with pytest.raises(ShapeContractError, match=r"with_sizes\(topk=.*give \(number, ") as refused:
        dims.with_sizes(topk=given)  # type: ignore[arg-type]  # on purpose
    assert refused.value.diagnostic.dims is not None
    assert refused.value.diagnostic.dims.expected == "topk"
