"""Compact trees: the same syntax in the eyes of everybody who asks."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TypeGuard

from shapecheck.static import analyse, compact, statements
from shapecheck.static.blocks import Block
from shapecheck.static.compact import compacted, pack
from shapecheck.static.loader import Source, parse_source
from shapecheck.static.walk import walk

_FILES = [Path(str(one.__file__)) for one in (analyse, compact, statements, ast)]

# Decorators, wide characters, texts over lines, tabs, one-liners, and lines that are none.
_ODD = """
def first(): return 1
class A:
    @decorated(
        "中", x=1)
    async def δelta(self, 中): return "中", self.x, \\
  1

    def last(self):
# a comment in the first column
        return [
0]
\f
class B:
\t@one
\t@two
\tdef tabbed(self):
\t\ttext = '''
less
 indented'''; return text + self.x

if x:
    def under(): ...
else:
  def other():
      def inner(): return "中", x
      return inner
"""


def test_a_compact_tree_is_unparsed_as_the_tree_was() -> None:
    for file in _FILES:
        text = file.read_text(encoding="utf-8")
        assert ast.unparse(compacted(ast.parse(text))) == ast.unparse(ast.parse(text))


def test_what_is_rarely_there_stays() -> None:
    text = "match x:\n    case {'a': [1, *_]} if y:\n        z = u'text'\n"
    assert ast.unparse(compacted(ast.parse(text))) == ast.unparse(ast.parse(text))


def test_nodes_are_of_their_class_and_at_their_place() -> None:
    text = _FILES[0].read_text(encoding="utf-8")
    before, after = ast.parse(text), compacted(ast.parse(text))
    pairs = list(zip(walk(before), walk(after), strict=True))
    assert len(pairs) > 1_000
    for one, other in pairs:
        assert isinstance(other, type(one))
        if _is_placed(one):
            assert _is_placed(other)
            assert (one.lineno, one.col_offset) == (other.lineno, other.col_offset)
        if isinstance(one, ast.stmt):
            assert isinstance(other, ast.stmt)
            assert one.end_lineno == other.end_lineno


def test_a_packed_body_is_had_again_at_its_place() -> None:
    texts = [file.read_text(encoding="utf-8") for file in _FILES]
    for text in (*texts, _ODD):
        source = Source(path="", text=text)
        functions: list[ast.FunctionDef] = []
        packed = compacted(parse_source(source), functions)
        pack(functions, Block("", 0, text, 0, len(text)), "")
        assert functions
        assert not any(isinstance(getattr(one, "held", []), list) for one in functions)
        whole = compacted(parse_source(source))
        assert ast.dump(packed, include_attributes=True) == ast.dump(whole, include_attributes=True)


def test_a_function_is_packed_with_those_inside_it() -> None:
    source = Source(path="", text="def f():\n    def g():\n        pass\n")
    functions: list[ast.FunctionDef] = []
    compacted(parse_source(source), functions)
    assert [one.name for one in functions] == ["f"]


def test_compact_nodes_keep_no_dict() -> None:
    for node in walk(compacted(ast.parse("def f(x):\n    return x.y[0] + 1\n"))):
        assert not vars(node)


def _is_placed(node: ast.AST) -> TypeGuard[ast.expr]:
    return hasattr(node, "lineno")
