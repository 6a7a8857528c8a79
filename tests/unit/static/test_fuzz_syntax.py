"""Whatever a file holds, a run ends in findings about the file, never in a fault of the tool."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shapecheck.static.report import run

few = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
HEAD = b"""import torch
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Optional, Self, Union
from jaxtyping import Float, Int64
from shapecheck import carrier, contract, dtype, graph_buffers, ids, phase
from torch import Tensor, nn
d, t = draft_config, target_config
"""


def _faults(folder: Path, content: bytes) -> list[str]:
    """What the tool says about itself after linting these bytes."""
    (folder / "engine.py").write_bytes(content)
    report = run((str(folder),))
    return [one.message for one in report.findings if one.code == "SHP901"]


NAMES = [
    *("x", "y", "n", "d", "t", "self", "cls", "super", "torch", "None", "True", "0", "1", "-1"),
    *("1e400", "...", "'a'", "b'\\xff'", "f'{x!r:>{n}}'"),
]
ATOMS = st.sampled_from(
    [*NAMES, "0x" + "f" * 5000, "9" * 400, "d.hidden_size", "t.hidden_size", "x.shape", "[]", "{}"]
)
FORMS = (
    *("{}.hidden_states", "{}.append({})", "{}[{}]", "{}[:{}]", "{}[{}, ..., None, {}:]", "{}({})"),
    *("{}(*{}, **{})", "partial({}, {}, a={})({})", "({}, *{})", "[*{}, {}]", "{{{}: {}, **{}}}"),
    *("(lambda *a, k={}, **b: {})", "({} if {} else {})", "[{} for x in {} if {}]", "(z := {})"),
    *("{{{} for x, *y in {}}}", "next(x for x in {} if x >= {})", "({} < {} <= {} is not None)"),
    *(
        "torch.zeros({}, {})",
        "torch.cat([{}, {}], dim={})",
        "torch.stack({}, {})",
        "-{}",
        "{} @ {}",
    ),
    *("nn.functional.pad({}, ({}, {}))", "nn.Parameter({})", "nn.Linear({}, {})({})", "{} // {}"),
    *("getattr({}, 'hidden_size', {})", "setattr({}, 'x', {})", "{}.get_hidden_size({})", "not {}"),
    *("{} ** {}", "{} + {}", "{} and {}", "super().{}", "sorted({}, key={})", "len({})", "{}.x.y"),
)


def _formed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(FORMS), st.lists(inner, min_size=4, max_size=4)).map(
        lambda pair: pair[0].format(*pair[1])
    )


expressions = st.recursive(ATOMS, _formed, max_leaves=12)
STATEMENTS = (
    *("x = {}", "x, *y = {}", "(x, (y, *_)), n.a[0] = {}", "x: {} = {}", "x += {}", "del x, {}"),
    *("return {}", "raise {} from {}", "assert {}, {}", "global x", "nonlocal y", "yield {}"),
    *("import a.b as c, d.e", "from .{0} import *", "pass; {}; {}", "self.x = {}", "await {}"),
    *(
        "if {}: x = {}",
        "for x, *y in {}: {}",
        "while x := {}: break",
        "async with {} as (x, y): {}",
    ),
    *("with {} as x.y[0], {}: {}", "class C({}, metaclass={}): x: {} = {}", "@{}\ndef f(a, /): {}"),
    *("match {}:\n    case [1, *rest] if {}: {}\n    case {{'a': {}, **kw}} | C(x=1): pass",),
    *("try: {}\nexcept* {} as e: {}\nfinally: {}", "try: {}\nexcept: {}\nelse: {}", "{}"),
    *("type X[T: {}] = {}", "def f[T, *Ts, **P](x: T) -> {}: {}", "class D[T]({}): y: T = {}"),
    *("async def g(*, x={}, **k: {}):\n    async for y in {}: yield {}", "x = {}\n\x0c\ny = {}"),
    *("@contract\ndef f(x: {}, *y: {}) -> {}: {}", "@carrier\n@dataclass\nclass E:\n    x: {}"),
)
statements = st.tuples(
    st.sampled_from(STATEMENTS), st.lists(expressions, min_size=4, max_size=4)
).map(lambda pair: pair[0].format(*pair[1]))
bodies = st.lists(statements, min_size=1, max_size=6)


def _indented(lines: list[str], depth: int) -> str:
    return "\n".join(f"{' ' * depth}{one}" for each in lines for one in each.split("\n"))


@few
@given(bodies, bodies, bodies)
@example(["x = {}"], ["x = 1"], ["pass"])
def test_odd_syntax_at_every_level(
    tmp_path: Path, top: list[str], method: list[str], nested: list[str]
) -> None:
    text = (
        f"{_indented(top, 0)}\n"
        "def f(draft, target, n, x=None, *y):\n"
        f"    d, t = draft, target\n{_indented(nested, 4)}\n    return x\n"
        "class Worker(nn.Module, Missing):\n"
        f"    def draft_(self, n, x, y=0):\n{_indented(method, 8)}\n"
        "        class Local(Worker):\n"
        f"            def capture(self):\n{_indented(nested, 16)}\n"
        "        return Local(self, n).capture() + self.draft_(n, x)\n"
    )
    assert _faults(tmp_path, HEAD + text.encode(errors="replace")) == []


MARKS = (
    *('Float[Tensor, "bs n"]', "Int64[Tensor, 'bs*']", "Float[x, 'bs', 1]", "Float", "Tensor"),
    *("Float[Tensor, f'{n}']", "list", "tuple[()]", "Optional", "Self", "'unfinished['", "'(' * 9"),
    *('phase("decode")', "phase(1)", "dtype('draft')", "ids()", "owner", "None", "...", "Worker"),
)
HINTS = ("{} | {}", "Optional[{}]", "Union[{}, {}]", "Annotated[{}, {}]", "list[{}]", "tuple[{}]")
MORE = ("tuple[{}, ...]", "dict[{}, {}]", "Callable[[{}], {}]", "{}[{}]", "'{}'", "Annotated[{}]")
hints = st.recursive(
    st.sampled_from(MARKS),
    lambda inner: st.tuples(st.sampled_from([*HINTS, *MORE]), inner, inner).map(
        lambda one: one[0].format(*one[1:])
    ),
    max_leaves=8,
)


@few
@given(hints, hints, hints)
def test_odd_annotations_of_contracts(tmp_path: Path, one: str, two: str, three: str) -> None:
    text = (
        f"Alias = {one}\n@carrier\n@dataclass\nclass State(Base):\n"
        f"    x: {one}\n    y: {two} = None\n"
        f"@graph_buffers(live={two})\n@dataclass\nclass Worker(State):\n    x: {three}\n"
        f"    @contract(phase={three})\n    def run(self, a: Alias, *b: {one}, **c: {two}"
        f") -> {three}: ...\n    @staticmethod\n    @contract(phase='decode')\n"
        f"    def make(state: State, own: 'Worker', d: {one}): yield state\n"
    )
    assert _faults(tmp_path, HEAD + text.encode()) == []


PIECES = (
    *(
        b"\xef\xbb\xbf",
        b"\x00",
        b"\x0c",
        b"\r",
        b"\r\n",
        b"\x1a",
        b"\xff\xfe",
        b"\\\n",
        b"\t",
        b" ",
    ),
    *(b"# -*- coding: latin-1 -*-\n", b"# coding: utf-16\n", b"# coding: nonsense\n", b"\xe4\xf6"),
    *(b"# vim: set fileencoding=cp1252 :\n", "ä = 'ß\u2028'\n".encode(), b"\xed\xa0\x80", b"'''"),
    *(
        b"x = draft_config.hidden_size\n",
        b"def f(draft, n):\n    return n\n",
        b"(" * 300,
        b"if x:\n",
    ),
    *(
        b"x = " + b"[" * 150 + b"]" * 150 + b"\n",
        b"x = " + b"-" * 3000 + b"1\n",
        b"9" * 5000 + b"\n",
    ),
    *(b"f'{" * 4, b'"' * 7, b"@", b"async ", b"match x:\n case _:\n  pass\n", b"type X = int\n"),
)


@few
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=12), max_size=14).map(b"".join))
def test_any_bytes(tmp_path: Path, content: bytes) -> None:
    assert _faults(tmp_path, content) == []
    assert _faults(tmp_path, HEAD + content) == []


def test_depth_that_the_parser_takes_and_the_analysis_meets(tmp_path: Path) -> None:
    """Nesting just below what the parser refuses: calls, operators, attributes, blocks, classes."""
    for text in (
        "x = " + "f(" * 90 + "1" + ")" * 90,
        "x = " + " + ".join(["d.hidden_size"] * 3000),
        "x = " + "not " * 500 + "x",
        "x = d" + ".a" * 4000 + ".hidden_size",
        "x = d" + "[0]" * 900,
        "x = d" + ".f()" * 900,
        "\n".join("    " * depth + "if x:" for depth in range(90)) + "\n" + "    " * 90 + "x = 1",
        "\n".join(" " * depth + f"class C{depth}:" for depth in range(90))
        + "\n"
        + " " * 90
        + "x = 1",
        "\n".join(" " * depth + f"def f{depth}(x):" for depth in range(90))
        + "\n"
        + " " * 90
        + "x()",
        "x = " + "lambda: " * 500 + "1",
        "if x: pass\n" + "elif x: pass\n" * 900,
    ):
        assert _faults(tmp_path, HEAD + text.encode() + b"\n") == []
