"""Whatever bytes a reader of the linter is given, it answers or refuses in its own words."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shapecheck.cli.baseline import read_baseline
from shapecheck.cli.project_settings import read_settings
from shapecheck.errors import ShapecheckError
from shapecheck.static.packs.load import load_pack
from shapecheck.static.packs.versions import VersionRange
from shapecheck.static.report import run
from shapecheck.static.suppressions import apply_suppressions, find_suppressions

few = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
WORDS = [
    *[
        "package",
        "versions",
        "phases",
        "owners",
        "class",
        "def",
        "x",
        "self",
        "select",
        "exclude",
        "cache",
        "output-format",
    ],
    *[
        "per-file-ignores",
        "[tool.shapecheck]",
        '"SHP301"',
        ">=1.0",
        "<2",
        "version",
        "findings",
        "count",
        "code",
    ],
    *[
        "Annotated",
        "Float",
        "Tensor",
        "phase",
        "owner",
        "dim",
        '"rows+1"',
        '"draft_hidden"',
        "*bs",
        "path",
        "cell",
    ],
    *[
        "shapecheck:",
        "ignore[SHP301]",
        "reason",
        "=",
        "[",
        "]",
        "{",
        "}",
        "'",
        ",",
        ":",
        ".",
        "|",
        "->",
        "(",
        ")",
        "@",
        "#",
        "\\",
        "é",
        "1",
        "true",
        "None",
    ],
    *('"', "\n", "\t", "\u2028", "fingerprint"),
]
texts = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)
data = texts.map(str.encode) | st.binary(max_size=60)


def _answers(read: Callable[[Path], object], file: Path, content: bytes) -> bool:
    """Whether the bytes are read, or refused in a sentence; any other exception passes through."""
    file.write_bytes(content)
    try:
        return read(file) is not None
    except ShapecheckError as error:
        return str(error) != ""


@few
@given(data)
def test_a_baseline(tmp_path: Path, content: bytes) -> None:
    assert _answers(read_baseline, tmp_path / "baseline.json", content)


@few
@given(data)
def test_settings(tmp_path: Path, content: bytes) -> None:
    assert _answers(read_settings, tmp_path / "pyproject.toml", b"[tool.shapecheck]\n" + content)


@few
@given(data)
def test_a_manifest(tmp_path: Path, content: bytes) -> None:
    assert _answers(
        lambda file: load_pack(file.parent, "mine"),
        tmp_path / "pack.toml",
        b'package = "engine"\n' + content,
    )


@few
@given(texts)
def test_a_stub(tmp_path: Path, annotation: str) -> None:
    (tmp_path / "pack.toml").write_text('package = "engine"\nphases = ["decode"]\n')
    stub = f"class A:\n    x: {annotation}\n    @phase({annotation})\n    def f(self): ...\n"
    assert _answers(
        lambda file: load_pack(file.parent, "mine"), tmp_path / "engine.pyi", stub.encode()
    )


@few
@given(texts)
def test_a_range_of_versions(text: str) -> None:
    holds: bool | None = None
    with contextlib.suppress(ValueError):
        holds = VersionRange.parse(text).holds(text)
    assert holds in (True, False, None)


@few
@given(st.lists(st.sampled_from([*WORDS, "# shapecheck: ignore", "[", "]"])).map(" ".join))
def test_suppressions(text: str) -> None:
    found = find_suppressions(text, "engine.py")
    assert len(apply_suppressions([], found)) >= len(found)


CODE = (
    *("torch.zeros(n, d.hidden_size)", "torch.cat([x, y])", "x.view(-1, t.hidden_size)"),
    *("x[:n]", "x @ y", "(x, y)", "[*x, y]", "{'a': x}", "{'a': x}['a']", "x if n else y"),
    *("x.shape[0]", "f(*x, y)", "f(**x)", "x.hidden_states", "x.repeat_interleave(n)"),
    *("torch.nn.Linear(d.hidden_size, n)(x)", "torch.where(n, x, y)", "x + y * 2"),
)
statements = st.tuples(st.sampled_from("xyn"), st.sampled_from(CODE)).map(
    lambda pair: f"    {pair[0]} = {pair[1]}\n"
)


@few
@given(st.lists(statements, max_size=12).map("".join))
def test_a_program(tmp_path: Path, body: str) -> None:
    head = "import torch\ndef f(draft, target, n, x=None, y=None):\n    d, t = draft, target\n"
    (tmp_path / "engine.py").write_text(f"{head}{body}    return x, y\n")
    assert "SHP901" not in {one.code for one in run((str(tmp_path),)).findings}
