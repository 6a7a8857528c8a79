"""The command that runs the trace part on several torch: what it tries, installs and counts."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.torch_versions import ROOT, TRACE_PART, Outcome, candidates, counts, requirements

OFFERED = ("2.15.0", "2.14.1", "2.14.0", "2.13.0+cpu", "2.13.0", "2.11.0")


@pytest.mark.parametrize(
    ("wanted", "tried"),
    [
        ("2.11", ["2.11.0"]),
        ("2.13", ["2.13.0+cpu"]),
        ("2.13.0", ["2.13.0+cpu"]),
        ("2.14.1", ["2.14.1"]),
        ("newest", ["2.15.0", "2.14.1", "2.14.0"]),
    ],
)
def test_a_version_is_the_best_that_the_index_offers(wanted: str, tried: list[str]) -> None:
    assert candidates(wanted, OFFERED) == tried


def test_a_version_that_is_not_offered_is_a_message() -> None:
    with pytest.raises(SystemExit, match=r"torch 2\.12: the index offers 2\.15\.0"):
        candidates("2.12", OFFERED)


def test_everything_but_torch_is_installed_with_it() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        found = requirements(tomllib.load(file)["project"], "test")
    names = {line.partition(">")[0].partition("[")[0].strip() for line in found}
    assert {"beartype", "jaxtyping", "pytest", "transformers", "tokenizers"} <= names
    assert not any(line.startswith(("torch", "triton")) for line in found)


def test_the_table_counts_errors_as_failed(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite tests="9" errors="1" failures="2" skipped="3"/></testsuites>'
    )
    assert counts(report) == (3, 3, 3)
    assert Outcome(torch="2.11.0", passed=3, failed=3).row().split() == ["2.11.0", "3", "0", "3"]


def test_the_trace_part_exists() -> None:
    assert all((ROOT / path).exists() for path in TRACE_PART)
