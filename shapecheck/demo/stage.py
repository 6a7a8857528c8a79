"""What the demo runs: the linter on a release, and ranks of the engine, each in a process.

The engine is started by its module name: shapecheck itself never imports it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from shapecheck.errors import ShapecheckError

RELEASE = "pypi:sglang==0.5.11:sglang/srt/speculative"
MINIATURE = Path(__file__).with_name("miniature")

_Json = Mapping[str, object]
_FRAME = re.compile(r'  File "(?P<path>.+)", line (?P<line>\d+), in (?P<function>\S+)')
_LINT_SECONDS = 40
_RANK_SECONDS = 60
_ENGINE_NEEDS = ("gguf", "numpy", "safetensors", "tokenizers", "torch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of the linter: place, code and message, then the chain that led there."""

    line: str
    chain: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LintScene:
    """What the linter said: `release` is None when the bundled miniature stood in, and why."""

    release: str | None
    why_not: str
    findings: tuple[Finding, ...]
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankScene:
    """How a rank ended: the error's own text and its stack, innermost first; empty if healthy."""

    level: str
    error: str
    stack: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the healthy rank says of itself; seconds are those of one iteration."""

    requests: int
    same_tokens: bool
    iteration_seconds: float
    contract_seconds: float


def lint_release() -> LintScene:
    """The linter on the release that had the bug, or on the miniature where no index answers."""
    report, why_not = lint(RELEASE)
    release: str | None = RELEASE
    if report is None:
        release = None
        report, reason = lint(str(MINIATURE))
        if report is None:
            raise ShapecheckError(f"shapecheck lint fails on the bundled miniature: {reason}")
    summary = cast("Mapping[str, object]", report.get("summary", {}))
    files = summary.get("files")
    return LintScene(
        release=release,
        why_not=why_not,
        findings=tuple(_finding(f) for f in cast("list[_Json]", report["findings"])),
        files=files if isinstance(files, int) else 0,
    )


def lint(target: str) -> tuple[dict[str, object] | None, str]:
    """The linter's JSON report on `target`, or None and why there is none."""
    command = [sys.executable, "-m", "shapecheck", "lint", target, "--output-format", "json"]
    # pip's own patience (5 retries of 15 s) would outlast the demo.
    patience = {"PIP_RETRIES": "1", "PIP_DEFAULT_TIMEOUT": "10"}
    try:
        done = _run(command, _LINT_SECONDS, patience)
    except subprocess.TimeoutExpired:
        return None, f"no answer within {_LINT_SECONDS} seconds"
    if done.returncode in (0, 1):
        return cast("dict[str, object]", json.loads(done.stdout)), ""
    lines = done.stderr.strip().splitlines()
    return None, lines[-1] if lines else f"exit code {done.returncode}"


def _finding(finding: _Json) -> Finding:
    notes = cast("list[_Json]", finding["notes"])
    primary = cast("_Json", finding["primary"] or {})
    return Finding(
        line=f"{_place(primary)}{finding['code']} {finding['message']}",
        chain=tuple(f"{note['label']:<14} {_place(note)}{note['message']}" for note in notes),
    )


def _place(span: _Json) -> str:
    return f"{span['path']}:{span['line']} " if span.get("path") else ""


def missing() -> tuple[str, ...]:
    """What the engine needs and this environment has not."""
    return tuple(name for name in _ENGINE_NEEDS if find_spec(name) is None)


def mistaken(level: str) -> RankScene:
    """How the rank with the mistake ends under SHAPECHECK=level."""
    return _rank(level, "mistaken")


def healthy() -> Figures:
    """What the rank without the mistake did under SHAPECHECK=strict."""
    scene = _rank("strict", "healthy")
    if scene.error:
        raise ShapecheckError(f"the healthy rank fails: {scene.error}; report it as a bug")
    return Figures(**json.loads(scene.output))


def _rank(level: str, kind: str) -> RankScene:
    # -P: a folder called `engine` where the demo was started is not this project's.
    command = [sys.executable, "-P", "-m", "engine.demo", kind]
    try:
        done = _run(command, _RANK_SECONDS, {"SHAPECHECK": level, "OMP_NUM_THREADS": "1"})
    except subprocess.TimeoutExpired:
        raise ShapecheckError(
            f"the {kind} rank did not end within {_RANK_SECONDS} seconds; "
            "run the demo again on an idle machine"
        ) from None
    error, stack = _failure(done.stderr) if done.returncode else ("", ())
    return RankScene(level=level, error=error, stack=stack, output=done.stdout)


def _run(
    command: list[str], seconds: int, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, **env},
        check=False,
    )


def _is_ours(path: str) -> bool:
    """Neither generated code nor a frame of torch, which tell the reader nothing."""
    return not path.startswith("<") and "torch" not in Path(path).parts


def _failure(stderr: str) -> tuple[str, tuple[str, ...]]:
    """The last exception's own text, and `function (file:line)` of its frames, innermost first."""
    lines = stderr.rstrip().splitlines()
    opened = [i for i, line in enumerate(lines) if line.startswith("Traceback ")]
    frames = (
        [match for line in lines[opened[-1] :] if (match := _FRAME.match(line))] if opened else []
    )
    text = lines
    if frames:
        last = max(i for i, line in enumerate(lines) if _FRAME.match(line))
        start = next((i for i in range(last, len(lines)) if lines[i][:1].strip()), last)
        text = lines[start:]
    stack = tuple(
        f"{frame['function']} ({Path(frame['path']).name}:{frame['line']})"
        for frame in reversed(frames)
        if _is_ours(frame["path"]) and frame["function"] != "<module>"
    )
    return "\n".join(text), stack
