"""Hostile files become SHP903, never a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapecheck.static.loader import (
    MAX_BYTES,
    Source,
    UnreadableFileError,
    decode_source,
    parse_source,
    read_source,
    split_lines,
)

HOSTILE = {
    "null byte": b"x = 1\0\n",
    "unknown encoding": b"# -*- coding: klingon -*-\nx = 1\n",
    "not UTF-8": b"x = '\xff\xfe\xfa'\n",
    "syntax": b"def f(:\n",
    "unclosed": b"x = (1,\n",
    "deep parentheses": b"x = " + b"(" * 5000 + b")" * 5000,
    "deep unary": b"x = " + b"-" * 200_000 + b"1",
    "tabs and spaces": b"if x:\n\ty\n        z\n",
}


def _load(data: bytes) -> None:
    parse_source(decode_source(data, "hostile.py"))


def _answer(data: bytes) -> str:
    try:
        _load(data)
    except UnreadableFileError as error:
        return error.diagnostic.code
    return "loaded"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_unreadable(name: str) -> None:
    with pytest.raises(UnreadableFileError) as caught:
        _load(HOSTILE[name])
    finding = caught.value.diagnostic
    assert finding.code == "SHP903"
    assert finding.primary is not None
    assert finding.primary.path == "hostile.py"
    assert finding.notes[0].label == "settle it"


def test_syntax_error_keeps_its_line() -> None:
    with pytest.raises(UnreadableFileError) as caught:
        _load(b"x = 1\ny = 2\nz = = 3\n")
    assert caught.value.diagnostic.primary is not None
    assert caught.value.diagnostic.primary.line == 3


def test_declared_encoding_is_used() -> None:
    source = decode_source("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), "a.py")
    assert "é" in source.text


def test_byte_order_mark_is_dropped() -> None:
    assert parse_source(decode_source(b"\xef\xbb\xbfx = 1\n", "a.py")).body


def test_folder_named_like_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.py").mkdir()
    with pytest.raises(UnreadableFileError, match="regular file"):
        read_source(tmp_path / "x.py", "x.py")


def test_too_large_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "big.py"
    with file.open("wb") as sink:
        sink.truncate(MAX_BYTES + 1)
    with pytest.raises(UnreadableFileError, match="limit"):
        read_source(file, "big.py")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_file_without_permission(tmp_path: Path) -> None:
    file = tmp_path / "secret.py"
    file.write_text("x = 1\n")
    file.chmod(0)
    with pytest.raises(UnreadableFileError, match="permission"):
        read_source(file, "secret.py")


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_load_or_are_refused(data: bytes) -> None:
    assert _answer(data) in ("loaded", "SHP903")


@given(st.text(alphabet="a\n\r\f\x1c\u2028"))
def test_lines_are_counted_as_they_are_split(text: str) -> None:
    assert Source(path="a.py", text=text).lines == len(split_lines(text))
