"""Versions are ordered as Python packages order them; ranges hold or do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapecheck.static.packs.versions import VersionRange, version_key


def test_stages_are_in_the_order_of_a_release() -> None:
    versions = ["0.5.dev1", "0.5a1", "0.5b2", "0.5rc1", "0.5", "0.5.post1", "0.5.post3", "0.5.1"]
    keys = [version_key(one) for one in versions]
    assert None not in keys
    assert keys == sorted(keys, key=lambda key: key or ())


def test_trailing_zeros_and_local_parts_do_not_count() -> None:
    assert version_key("1.0.0") == version_key("1") == version_key("v1.0+cu126")


@pytest.mark.parametrize("text", ["", "main", "1..2", "1.x", "latest", "1.0-foo"])
def test_no_version(text: str) -> None:
    assert version_key(text) is None
    assert not VersionRange.parse("").holds(text)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (">=0.4.8,<0.5.12", ["0.4.8", "0.5.11.post1", "0.5.12rc1"], ["0.4.7", "0.5.12", "0.6"]),
        ("==0.5", ["0.5", "0.5.0"], ["0.5.post1"]),
        ("!=0.5", ["0.5.1"], ["0.5"]),
        (">0.5, <=0.6", ["0.5.post1", "0.6"], ["0.5", "0.6.1"]),
        ("", ["0.0.1", "99"], []),
    ],
)
def test_ranges(text: str, inside: list[str], outside: list[str]) -> None:
    versions = VersionRange.parse(text)
    assert [one for one in inside if not versions.holds(one)] == []
    assert [one for one in outside if versions.holds(one)] == []


@pytest.mark.parametrize("text", ["0.5", "=0.5", ">=", ">=0.5,", "~=0.5", ">=x"])
def test_a_limit_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is no limit; write one such as"):
        VersionRange.parse(text)


@given(st.text(max_size=40))
def test_any_text_is_a_range_or_a_value_error(text: str) -> None:
    said = "is no limit"
    try:
        VersionRange.parse(text).holds(text)
    except ValueError as error:
        said = str(error)
    assert "is no limit" in said
