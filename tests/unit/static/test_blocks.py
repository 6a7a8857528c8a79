"""Cutting a text into definitions: what waits is what a whole reading finds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from shapecheck.static.blocks import cut
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.loader import Source
from shapecheck.static.project import Project

HOSTILE = {
    "a text with a definition in its first column": (
        'x = """\n'
        "def f():\n"
        "    pass\n"
        '"""\n'
        "\n"
        "def g():\n"
        "    s = '''\n"
        "class H:\n"
        "'''\n"
        "    return s\n"
    ),
    "decorators of several lines": ("@one\n@two(\n    1,\n)\nasync def f(\n    a,\n):\n    pass\n"),
    "a definition after a comment in the first column": (
        "def f():\n    a = 1\n# no end\n    return a\nclass C:\n    pass\n"
    ),
    "quotes in comments and comments in quotes": (
        'def f():  # it\'s """\n    return \'# """\'\ndef g():\n    return 1\n'
    ),
    "no line at the end": ("def f(): return 1"),
    "a name bound twice": ("def f():\n    return 1\nf = None\ndef f():\n    return 2\n"),
    "conditions around definitions": (
        "if x:\n    def f(): pass\nelse:\n    def g(): pass\ndef h(): pass\n"
    ),
    "imports in functions": (
        "def f():\n"
        "    from a import (\n"
        "        b,  # why\n"
        "        c as d,\n"
        "    )\n"
        "    import e.f as g, h.i\n"
        "    return b\n"
    ),
    "one name imported from two places": (
        "def f():\n"
        "    try:\n"
        "        from a import x\n"
        "    except ImportError:\n"
        "        from b import x\n"
    ),
    "imports behind a colon": ("def f():\n    if 1: import q\n    text = '; import nothing'\n"),
    "an import in a text": ('def f():\n    """\n    from a import b\n    """\n'),
    "an import that goes on in the next line": ("def f():\n    from a import b, \\\n        c\n"),
    "raised from": ("def f():\n    raise E(\n        1\n    ) \\\n    from e\n"),
    "letters that are no ASCII": ("A = 'é'\ndef f(é, x='ü'):\n    return 'ü', x.y\n"),
    "form feeds before definitions": (
        "\fdef f(a):\n    return a.b\n\fclass C:\n\f    def g(a): return a\n"
    ),
    "carriage returns": ("def f():\r\n    return 1\r\nx = f.g\r\n"),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_every_name_of_a_cut_text_is_bound_as_in_the_whole(text: str, tmp_path: Path) -> None:
    cut_project, whole_project = Project(tmp_path), Project(tmp_path)
    source = Source(path="m.py", text=text)
    cut_module = cut_project.add(source, "m", is_package=False)
    whole = whole_project.add(source, "m", is_package=False, whole=True)
    assert cut_module is not None
    assert whole is not None
    assert set(cut_module.bindings) == set(whole.bindings)
    for name in whole.bindings:
        mine, theirs = cut_project.bound(cut_module, name), whole_project.bound(whole, name)
        assert type(mine) is type(theirs)
        if isinstance(theirs, FunctionFacts | ClassFacts):
            assert isinstance(mine, FunctionFacts | ClassFacts)
            assert _dump(mine.node) == _dump(theirs.node)
        else:
            assert isinstance(mine, ast.expr) or mine == theirs


def _dump(node: ast.AST) -> str:
    return ast.dump(node, include_attributes=True)


def test_a_definition_is_not_parsed_before_it_is_asked_for(tmp_path: Path) -> None:
    text = "x = 1\ndef broken(:\n    pass\ndef f():\n    return 1\n"
    project = Project(tmp_path)
    module = project.add(Source(path="m.py", text=text), "m", is_package=False)
    assert module is not None
    assert isinstance(project.bound(module, "f"), FunctionFacts)
    assert not project.unreadable
    assert project.bound(module, "broken") is None
    assert project.unreadable["m.py"].code == "SHP903"


def test_the_lines_of_the_rest_are_those_of_the_text() -> None:
    blocks = cut("a = 1\n\ndef f():\n    return 1\n\nb = 2\n")
    assert blocks is not None
    assert [one.name for one in blocks.definitions] == ["f"]
    assert [node.lineno for node in ast.parse(blocks.rest).body] == [1, 6]
