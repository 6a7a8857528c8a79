"""Kept outcomes: reused while nothing they rest on changed, and never trusted blindly."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from shapecheck.rules.owners_meet import BAD, GOOD
from shapecheck.static import result_cache
from shapecheck.static.entries import read_entries
from shapecheck.static.prefilter import weight
from shapecheck.static.report import Inputs, Report, run
from shapecheck.static.result_cache import ResultCache

Lint = Callable[[], Report]
LOWER = "import torch\n\n\ndef width(config):\n    return config.hidden_size\n"
UPPER = BAD.replace("import torch", "import torch\nfrom engine.lower import width", 1)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """`engine` with an entry that imports a file of no interest of its own."""
    folder = tmp_path / "engine"
    (folder / "work").mkdir(parents=True)
    for init in (folder, folder / "work"):
        (init / "__init__.py").write_text("")
    (folder / "lower.py").write_text(LOWER.replace("torch", "os"))
    (folder / "work" / "upper.py").write_text(
        UPPER
        + "\nfrom engine.later import other\n\n\ndef use(draft_config):\n"
        + "    return torch.zeros(width(draft_config), other(draft_config))\n"
    )
    (folder / "work" / "plain.py").write_text("x = 1\n")
    return folder


@pytest.fixture
def cached(package: Path, tmp_path: Path) -> Lint:
    """Lints `engine/work` with a cache."""
    folder = tmp_path / "cache"
    return lambda: run((str(package / "work"),), inputs=Inputs(cache=lambda _root: folder))


def _recalled(report: Report) -> bool:
    return all(one.recalled for one in report.analyses)


def test_an_unchanged_tree_is_recalled_with_the_same_report(cached: Lint) -> None:
    first, second = cached(), cached()
    assert (_recalled(first), _recalled(second)) == (False, True)
    assert len(first.findings) == 1
    assert second.findings == first.findings
    different = {"seconds", "recalled"}
    assert {k: v for k, v in second.summary().items() if k not in different} == {
        k: v for k, v in first.summary().items() if k not in different
    }


def test_a_file_that_takes_no_part_may_change(package: Path, cached: Lint) -> None:
    cached()
    (package / "work" / "plain.py").write_text("x = 2\ny = 3\n")
    report = cached()
    assert _recalled(report)
    assert report.analyses[0].lines == run((str(package / "work"),)).analyses[0].lines


@pytest.mark.parametrize("file", ["work/upper.py", "lower.py"])
def test_comments_and_layout_move_the_findings_along(
    file: str, package: Path, cached: Lint
) -> None:
    before = cached()
    source = (package / file).read_text()
    (package / file).write_text(
        "# a comment\n\n" + source.replace("\n\n\n", "\n\n\n\n# between\n") + "# the end\n"
    )
    after = cached()
    assert _recalled(after)
    assert after.findings == run((str(package / "work"),)).findings
    assert (after.findings != before.findings) is (file == "work/upper.py")
    assert _recalled(cached())


def test_a_comment_that_makes_a_function_worth_reading_is_no_layout(
    package: Path, cached: Lint
) -> None:
    file = package / "work" / "upper.py"
    file.write_text(file.read_text() + "\n\ndef quiet(a):\n    return a\n")
    cached()
    file.write_text(file.read_text().replace("return a\n", "return a  # hidden\n"))
    assert not _recalled(cached())


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("work/upper.py", GOOD),
        ("lower.py", LOWER),
        ("work/plain.py", BAD),
        ("work/new.py", BAD),
        ("later.py", "def other(config):\n    return config.hidden_size\n"),
        ("work/plain.py", "import torch, draft\ndef f(:\n"),
        ("work/plain.py", "import torch, draft\0"),
    ],
)
def test_what_takes_part_is_analysed_anew(
    file: str, text: str, package: Path, cached: Lint
) -> None:
    cached()
    (package / file).write_text(text)
    report = cached()
    assert not _recalled(report)
    assert report.findings == run((str(package / "work"),)).findings
    assert _recalled(cached())


def test_a_repaired_file_is_not_reported_any_more(package: Path, cached: Lint) -> None:
    broken = package / "work" / "plain.py"
    broken.write_bytes(b"x = 1\0")
    assert [one.code for one in cached().findings] == ["SHP301", "SHP903"]
    broken.write_text("x = 1\n")
    assert [one.code for one in cached().findings] == ["SHP301"]


def test_suppressions_are_read_anew(package: Path, cached: Lint) -> None:
    cached()
    (package / "work" / "plain.py").write_text("x = 1  # shapecheck: ignore[SHP301] stale\n")
    report = cached()
    assert _recalled(report)
    assert {one.code for one in report.findings} == {"SHP301", "SHP902"}


def test_another_state_of_the_tool_recalls_nothing(
    cached: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached()
    monkeypatch.setattr(result_cache, "_tool", lambda: ["0.0.0"])
    assert not _recalled(cached())


@pytest.mark.parametrize(
    "damage", ["empty", "cut", "flipped", "checksum", "binary", "other", "folder"]
)
def test_a_damaged_entry_is_a_miss(damage: str, cached: Lint, tmp_path: Path) -> None:
    cached()
    (kept,) = (tmp_path / "cache").glob("*.json.z")
    data = kept.read_bytes()
    if damage == "folder":
        kept.unlink()
        kept.mkdir()
    else:
        kept.write_bytes(
            {
                "empty": b"",
                "cut": data[: len(data) // 2],
                "flipped": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
                "checksum": data[:3] + b"0" + data[4:],
                "binary": bytes(range(256)),
                "other": b'{"version": 9}\n[]',
            }[damage]
        )
    report = cached()
    assert not _recalled(report)
    assert [one.code for one in report.findings] == ["SHP301"]


def test_a_cache_that_cannot_be_written_costs_nothing_else(package: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    inputs = Inputs(cache=lambda _root: tmp_path / "file")
    assert len(run((str(package / "work"),), inputs=inputs).findings) == 1


def test_concurrent_writers_leave_one_whole_entry(
    package: Path, cached: Lint, tmp_path: Path
) -> None:
    cached()
    cache = ResultCache(folder=tmp_path / "cache")
    (key,) = (file.name.removesuffix(".json.z") for file in cache.folder.glob("*.json.z"))
    entries = read_entries(
        package.parent, [package / "work"], given={}, excluded=lambda _file: False
    )
    outcome = cache.get(key, entries, weight)
    assert outcome is not None
    misses: list[object] = []

    def write() -> None:
        for _ in range(20):
            cache.put(key, outcome)
            if cache.get(key, entries, weight) != outcome:
                misses.append(key)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert misses == []
    assert {file.name for file in cache.folder.iterdir()} == {
        f"{key}.json.z",
        f"{key}.units.z",
        ".gitignore",
    }


def test_only_the_newest_entries_stay(
    package: Path, cached: Lint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(result_cache, "_KEPT", 2)
    for version in range(4):
        monkeypatch.setattr(result_cache, "_tool", lambda version=version: [str(version)])
        cached()
    assert len(list((tmp_path / "cache").glob("*.json.z"))) == 2
    assert _recalled(cached())
