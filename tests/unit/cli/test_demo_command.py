"""`shapecheck demo` tells what it was shown, and stops where the show is not what it should be."""

from __future__ import annotations

import pytest

from shapecheck.cli import demo
from shapecheck.cli.main import main
from shapecheck.config import settings
from shapecheck.demo import stage

LATE = stage.RankScene(
    level="off",
    error="RuntimeError: Expected size 128 but got size 256",
    stack=("merge (worker.py:31)", "arrive (worker.py:159)"),
    output="",
)
NAMED = stage.RankScene(
    level="strict",
    error="shapecheck.errors.ShapeContractError: SHP201 DraftWorker.idle_input\n  dim 1: ...",
    stack=(),
    output="",
)
COST = stage.Cost(off=1e-3, strict=1.02e-3)


def found(release: str | None, *findings: str) -> stage.LintScene:
    shown = tuple(stage.Finding(line=line, chain=("read  b.py:3 x",)) for line in findings)
    return stage.LintScene(release=release, why_not="offline", findings=shown, files=3)


@pytest.fixture
def scenes(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the processes of the demo will say; a test changes it before it runs the command."""
    said: dict[str, object] = {"lint": found(stage.RELEASE, "a.py:7 SHP302 [odd]"), "strict": NAMED}
    monkeypatch.setattr(stage, "lint_release", lambda: said["lint"])
    monkeypatch.setattr(
        stage, "serve", lambda level, _kind: LATE if level == "off" else said["strict"]
    )
    monkeypatch.setattr(stage, "cost", lambda: COST)
    monkeypatch.setattr(demo, "find_spec", lambda _name: object())
    return said


@pytest.mark.usefixtures("scenes")
def test_all_three_scenes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "a.py:7 SHP302 [odd]\n  read  b.py:3 x\n" in out
    assert LATE.error in out
    assert "raised in merge (worker.py:31) <- arrive (worker.py:159)" in out
    assert "SHP201 DraftWorker.idle_input\n  dim 1: ..." in out
    assert "20.0 microseconds, 2.0% of an iteration" in out


def test_offline_it_says_what_was_linted(
    scenes: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    scenes["lint"] = found(None, "worker.py:7 SHP302 odd")
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "could not be fetched (offline)" in out
    assert str(stage.MINIATURE) in out


@pytest.mark.usefixtures("scenes")
def test_without_torch_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda _name: None)
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "SHP302" in out
    assert "pip install -e '.[engine]'" in out
    assert "microseconds" not in out


@pytest.mark.parametrize(
    ("scene", "value", "text"),
    [
        ("lint", found(stage.RELEASE), "found nothing where a bug is known"),
        ("strict", LATE, "to be named under strict"),
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
