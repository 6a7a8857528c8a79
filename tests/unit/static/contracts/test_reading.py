"""Annotations become promises from their syntax alone; what says nothing gives none."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapecheck.static.contracts.promise import Promise
from shapecheck.static.contracts.reading import AnnotationError, Place, read_promise

LENIENT = Place("a.py", "its annotation")
STRICT = Place("a.pyi", "the pack", strict=True, phases=("decode",))


def _read(text: str, place: Place = LENIENT) -> Promise | None:
    return read_promise(ast.parse(text, mode="eval").body, place)


def _axes(promise: Promise | None) -> list[str]:
    assert promise is not None
    (case,) = promise.cases
    assert case.axes is not None
    return ["?" if axis is None else str(axis) for axis in case.axes]


def test_axes_are_owned_sizes_counts_or_unknown() -> None:
    promise = _read('Float[Tensor, "bs*num_draft_tokens tokens 3*target_hidden draft_vocab 7"]')
    assert _axes(promise) == ["bs*num_draft_tokens", "?", "3*target_hidden", "draft_vocab", "7"]


def test_a_recurrent_width_is_the_drafts_an_extend_width_the_targets() -> None:
    assert _axes(_read('Float[Tensor, "recurrent_hidden extend_hidden"]')) == [
        "draft_hidden",
        "target_hidden",
    ]


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ('Int32[Tensor, "bs"]', "int32"),
        ('BFloat16[Tensor, "bs"]', "bfloat16"),
        ('Bool[Tensor, "bs"]', "bool"),
        ('Float[Tensor, "bs"]', ""),
        ('Int[torch.Tensor, "bs"]', ""),
    ],
)
def test_only_an_exact_kind_promises_a_dtype(text: str, dtype: str) -> None:
    promise = _read(text)
    assert promise is not None
    assert promise.cases[0].dtype == dtype


@pytest.mark.parametrize(
    "text",
    ["int", "Tensor", "list[int]", "Optional[Tensor]", "'x y'", "Annotated[int, 3]", "a.b.c"],
)
def test_an_annotation_without_sizes_promises_nothing(text: str) -> None:
    assert _read(text) is None


@pytest.mark.parametrize(
    "text",
    [
        'Optional[Float[Tensor, "bs draft_hidden"]]',
        'Float[Tensor, "bs draft_hidden"] | None',
        "'Float[Tensor, \"bs draft_hidden\"] | None'",
        'Union[None, Annotated[Float[Tensor, "bs draft_hidden"], dtype("draft")]]',
    ],
)
def test_optional_and_quoted_annotations_are_opened(text: str) -> None:
    assert _axes(_read(text))[-1] == "draft_hidden"


def test_an_unknown_axis_is_open_in_code_and_refused_in_a_stub() -> None:
    text = 'Float[Tensor, "bs mine"]'
    assert _axes(_read(text)) == ["bs", "?"]
    with pytest.raises(AnnotationError, match="SHP102"):
        _read(text, STRICT)


@given(st.text(max_size=60))
def test_any_shape_text_is_read_or_left_open(text: str) -> None:
    node = ast.parse("Float[Tensor, 'x']", mode="eval").body
    assert isinstance(node, ast.Subscript)
    assert isinstance(node.slice, ast.Tuple)
    constant = node.slice.elts[1]
    assert isinstance(constant, ast.Constant)
    constant.value = text
    promise = read_promise(node, LENIENT)
    assert promise is not None
    said = "SHP10"
    try:
        read_promise(node, STRICT)
    except AnnotationError as error:
        said = error.message
    assert said.startswith("SHP10")


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ('ids("target", pad=1)', "write a negative number"),
        ('ids("x", pad=-1)', "write ids"),
        ('indexes("bs", pad="none")', "write a negative number"),
        ('indexes("bs topk")', "one axis"),
        ('indexes("")', "one axis"),
        ('indexes("bs", padding=-1)', "is no mark"),
        ('ids("target", -1)', "is no mark"),
        ("indexes()", "is no mark"),
    ],
)
def test_a_wrong_mark_is_refused_in_a_stub_and_says_nothing_in_code(mark: str, said: str) -> None:
    text = f'Annotated[Int64[Tensor, "bs topk"], {mark}]'
    assert _axes(_read(text)) == ["bs", "topk"]
    with pytest.raises(AnnotationError, match=said):
        _read(text, STRICT)


def test_a_mark_of_values_changes_no_promise() -> None:
    text = 'Annotated[Int64[Tensor, "bs topk"], indexes("bs*topk", pad=-1), ids("draft", pad=-1)]'
    assert _axes(_read(text)) == _axes(_read(text, STRICT)) == ["bs", "topk"]
