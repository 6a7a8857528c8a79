"""What a comparison guards, read from the source around it."""

from __future__ import annotations

import pytest

from shapecheck.symbolic.guards import Guard, guard_at

SOURCE = """\
def f(a, b):
    assert a.shape == b.shape
    if a.shape != b.shape:
        raise ValueError("no")
    if a.shape == b.shape:
        a.copy_(b)
    if a.shape == b.shape:
        a[:2] = b
    if a.shape == b.shape:
        a.copy_(b)
    else:
        raise ValueError("no")
    if (
        a.shape == b.shape
    ):
        a.copy_(b)
    if a.shape == b.shape:
        return a
    if a.shape == b.shape:
        a.copy_(b)
    else:
        a = b
"""


@pytest.mark.parametrize(
    ("line", "guard"),
    [(2, Guard.ASSERT), (3, Guard.REFUSE), (5, Guard.COPY), (7, Guard.COPY), (9, Guard.CHOOSE),
     (14, Guard.COPY), (17, Guard.BRANCH), (19, Guard.BRANCH), (1, Guard.BRANCH)],
)  # fmt: skip
def test_guard(tmp_path, line, guard):
    path = tmp_path / "guarded.py"
    path.write_text(SOURCE, encoding="utf-8")
    assert guard_at(str(path), line) is guard


def test_without_source_it_is_a_branch():
    assert guard_at("/nowhere.py", 3) is Guard.BRANCH


def test_source_that_is_no_python_is_a_branch(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("if (", encoding="utf-8")
    assert guard_at(str(path), 1) is Guard.BRANCH
