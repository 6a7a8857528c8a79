"""How the demo reads what its processes say."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping

import pytest

from shapecheck import ShapecheckError
from shapecheck.demo import stage

TRACEBACK = """\
some warning
Traceback (most recent call last):
  File "<frozen runpy>", line 88, in _run_code
  File "/x/rank.py", line 99, in <module>
    main("serve")
  File "/x/rank.py", line 40, in main
    batch = arrive(target)
            ^^^^^^^^^^^^^^
  File "/x/torch/utils/_contextlib.py", line 124, in decorate_context
    return func(*args, **kwargs)
  File "/x/worker.py", line 31, in merge
    hidden_states=torch.cat([a, b]),
                  ^^^^^^^^^^^^^^^^^
pkg.BoundaryError: SHP201 first line
  second line
"""
FINDING: dict[str, object] = {
    "code": "SHP302",
    "message": "odd one",
    "primary": {"path": "a.py", "line": 7},
}
FINDING["notes"] = [{"label": "read", "message": "width", "path": "b.py", "line": 3}]

Run = Callable[[list[str], int, Mapping[str, str]], "subprocess.CompletedProcess[str]"]


def answering(*answers: tuple[int, str, str] | Exception) -> tuple[Run, list[list[str]]]:
    """A stand-in for running processes that gives these answers in turn, and its commands."""
    left, commands = list(answers), list[list[str]]()

    def run(
        command: list[str], seconds: int, env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return subprocess.CompletedProcess(command, *answer)

    return run, commands


def report(*findings: object) -> str:
    return json.dumps({"version": 1, "findings": findings, "summary": {"files": 3}})


def test_the_whole_error_and_its_stack() -> None:
    error, stack = stage._failure(TRACEBACK)
    assert error == "pkg.BoundaryError: SHP201 first line\n  second line"
    assert stack == ("merge (worker.py:31)", "main (rank.py:40)")


def test_an_error_without_a_traceback() -> None:
    assert stage._failure("Killed\n") == ("Killed", ())


def test_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    run, commands = answering((1, report(FINDING), ""))
    monkeypatch.setattr(stage, "_run", run)
    scene = stage.lint_release()
    assert scene.release == stage.RELEASE
    (finding,) = scene.findings
    assert finding.line == "a.py:7 SHP302 odd one"
    assert finding.chain == ("read           b.py:3 width",)
    assert scene.files == 3
    assert stage.RELEASE in commands[0]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((2, "", "progress\nshapecheck: no index reachable\n"), "shapecheck: no index reachable"),
        ((2, "", ""), "exit code 2"),
        (subprocess.TimeoutExpired("lint", 1), "no answer within"),
    ],
)
def test_the_miniature_stands_in(
    monkeypatch: pytest.MonkeyPatch, answer: tuple[int, str, str] | Exception, why: str
) -> None:
    run, commands = answering(answer, (1, report(FINDING), ""))
    monkeypatch.setattr(stage, "_run", run)
    scene = stage.lint_release()
    assert scene.release is None
    assert why in scene.why_not
    assert str(stage.MINIATURE) in commands[1]


def test_a_linter_that_fails_on_both_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = answering((2, "", "offline"), (2, "", "broken"))
    monkeypatch.setattr(stage, "_run", run)
    with pytest.raises(ShapecheckError, match="bundled miniature: broken"):
        stage.lint_release()


def test_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = (
        '{"requests": 8, "same_tokens": true, "iteration_seconds": 0.5, "contract_seconds": 0.25}'
    )
    run, commands = answering((0, figures, ""), (1, "", TRACEBACK), (1, "", TRACEBACK))
    monkeypatch.setattr(stage, "_run", run)
    assert stage.healthy() == stage.Figures(
        requests=8, same_tokens=True, iteration_seconds=0.5, contract_seconds=0.25
    )
    assert stage.mistaken("strict").stack[0] == "merge (worker.py:31)"
    assert commands[1][-2:] == ["engine.demo", "mistaken"]
    with pytest.raises(ShapecheckError, match="healthy rank fails"):
        stage.healthy()


def test_a_rank_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = answering(subprocess.TimeoutExpired("rank", 60))
    monkeypatch.setattr(stage, "_run", run)
    with pytest.raises(ShapecheckError, match="did not end within"):
        stage.mistaken("off")


def test_what_the_engine_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "find_spec", lambda name: None if name == "torch" else object())
    assert stage.missing() == ("torch",)
