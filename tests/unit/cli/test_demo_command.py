"""`shapecheck demo` tells what it was shown, and stops where the show is not what it should be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shapecheck.cli.main import main
from shapecheck.config import settings
from shapecheck.demo import stage

LATE = stage.RankScene(
    level="off",
    error="RuntimeError: Expected size 64 but got size 32",
    stack=("merge (batch.py:72)", "join (live.py:30)"),
    output="",
)
NAMED = stage.RankScene(
    level="strict",
    error="shapecheck.errors.ShapeContractError: SHP201 MistakenProposer.idle\n  dim 1: ...",
    stack=(),
    output="",
)
FIGURES = stage.Figures(requests=8, same_tokens=True, iteration_seconds=1e-3, contract_seconds=2e-5)


def found(release: str | None, *findings: str) -> stage.LintScene:
    shown = tuple(stage.Finding(line=line, chain=("read  b.py:3 x",)) for line in findings)
    return stage.LintScene(release=release, why_not="offline", findings=shown, files=3)


@pytest.fixture
def scenes(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the processes of the demo will say; a test changes it before it runs the command."""
    said: dict[str, object] = {
        "lint": found(stage.RELEASE, "a.py:7 SHP302 [odd]"),
        "off": LATE,
        "strict": NAMED,
        "healthy": FIGURES,
        "missing": (),
    }
    monkeypatch.setattr(stage, "lint_release", lambda: said["lint"])
    monkeypatch.setattr(stage, "mistaken", lambda level: said[level])
    monkeypatch.setattr(stage, "healthy", lambda: said["healthy"])
    monkeypatch.setattr(stage, "missing", lambda: said["missing"])
    return said


@pytest.mark.usefixtures("scenes")
def test_all_three_scenes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "a.py:7 SHP302 [odd]\n  read  b.py:3 x\n" in out
    assert LATE.error in out
    assert "raised in merge (batch.py:72) <- join (live.py:30)" in out
    assert "SHP201 MistakenProposer.idle\n  dim 1: ..." in out
    assert "20.0 microseconds" in out
    assert "The contracts cost 2.0% of an iteration" in out


def test_offline_it_says_what_was_linted(
    scenes: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    scenes["lint"] = found(None, "worker.py:7 SHP302 odd")
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "could not be fetched (offline)" in out
    assert str(stage.MINIATURE) in out


def test_without_the_engines_extra_it_says_what_to_install(
    scenes: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    scenes["missing"] = ("gguf", "torch")
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "SHP302" in out
    assert "The engine needs gguf, torch. In this checkout: pip install -e '.[engine]'" in out
    assert "microseconds" not in out


@pytest.mark.parametrize(
    ("scene", "value", "text"),
    [
        ("lint", found(stage.RELEASE), "found nothing where a bug is known"),
        ("off", replace(LATE, error="", stack=()), "to crash under off"),
        ("strict", LATE, "to be named under strict"),
        ("healthy", replace(FIGURES, same_tokens=False), "disagree on the tokens"),
    ],
)
def test_a_show_that_fails_is_a_fault(
    scenes: dict[str, object],
    capsys: pytest.CaptureFixture[str],
    scene: str,
    value: object,
    text: str,
) -> None:
    scenes[scene] = value
    assert main(["demo"]) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["SHAPECHECK", "SHAPECHECK_EVERY"])
def test_a_flag_that_would_stop_every_child_stops_the_demo(
    flag: str,
    scenes: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(flag, "abc")
    settings.cache_clear()
    assert main(["demo"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"shapecheck: {flag}='abc' is no ")
    assert captured.out == ""
    settings.cache_clear()
