"""Every output format of a whole run: what is on stdout, what on stderr."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Lint = Callable[..., Result]


@pytest.mark.parametrize("output_format", ["full", "concise", "json", "github", "sarif"])
def test_findings_are_on_stdout_and_the_summary_on_stderr(
    output_format: str, shapecheck_lint: Lint
) -> None:
    result = shapecheck_lint("src", "--output-format", output_format)
    assert result.exit_code == 1
    assert "SHP301" in result.stdout
    assert "1 finding in 1 files" not in result.stdout
    assert result.stderr.startswith("1 finding in 1 files (")


@pytest.mark.parametrize("output_format", ["full", "concise", "github"])
def test_a_clean_run_prints_nothing_on_stdout(output_format: str, shapecheck_lint: Lint) -> None:
    result = shapecheck_lint("src", "--ignore", "SHP", "--output-format", output_format)
    assert (result.exit_code, result.stdout) == (0, "")


def test_code_hosts_get_paths_from_the_current_folder(shapecheck_lint: Lint) -> None:
    assert "file=src/a.py,line=5," in shapecheck_lint("src", "--output-format", "github").stdout
    log = json.loads(shapecheck_lint("src", "--output-format", "sarif").stdout)
    (result,) = log["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/a.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"]["startLine"] == 5


def test_a_finding_has_one_fingerprint_in_every_format(shapecheck_lint: Lint) -> None:
    log = json.loads(shapecheck_lint("src", "--output-format", "sarif").stdout)
    document = json.loads(shapecheck_lint("src", "--output-format", "json").stdout)
    (result,) = log["runs"][0]["results"]
    (finding,) = document["findings"]
    assert result["partialFingerprints"] == {"shapecheck/v1": finding["fingerprint"]}


def test_sarif_says_how_the_run_ended(project: Path, shapecheck_lint: Lint) -> None:
    (project / "src" / "broken.py").write_text("import torch, draft\ndef f(:\n")
    log = json.loads(shapecheck_lint("src", "--output-format", "sarif").stdout)
    (run,) = log["runs"]
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (True, 1)
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["descriptor"] == {"id": "SHP903"}
    assert [one["ruleId"] for one in run["results"]] == ["SHP301"]


def test_statistics_name_the_shares(shapecheck_lint: Lint) -> None:
    lines = shapecheck_lint("src", "--statistics").stderr.splitlines()
    table = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[1:]}
    assert table["files"] == "1, 0 skipped by the prefilter"
    assert "dim reads  2, 2 with an owner (100%)" in lines[4]
    assert table["creations"] == "2, 2 with an owner (100%)"
    assert set(table) >= {"lines", "functions", "seconds"}


def test_exit_zero_hides_findings_but_no_fault(project: Path, shapecheck_lint: Lint) -> None:
    assert shapecheck_lint("src", "--exit-zero").exit_code == 0
    (project / "src" / "a.py").write_bytes(b"import torch, draft\0")
    assert shapecheck_lint("src", "--exit-zero").exit_code == 2
