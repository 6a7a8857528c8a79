"""SARIF: valid against the official schema, with the producer's chain as related locations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note, Severity, Span
from shapecheck.diagnostics.sarif import SCHEMA, RulePage, render_sarif
from shapecheck.rules.registry import RULES

OFFICIAL = Path(__file__).parents[2] / "data" / "schemas" / "sarif-schema-2.1.0.json"
PAGES = [
    RulePage(
        code=one.code, name=one.name, summary=one.summary, page=one.page, severity=one.severity
    )
    for one in RULES
]
FINDING = Diagnostic(
    code="SHP302",
    name="odd-one-out",
    message="draft_hidden passed to f(x=)",
    certainty=Certainty.MAY,
    primary=Span(path="engine/a b ñ.py", line=3, column=7),
    notes=(
        Note(label="read", message="config.hidden_size", span=Span(path="engine/c.py", line=1)),
        Note(
            label="other callers",
            message="engine/f.py:5:1 x",
            others=(Span(path="engine/f.py", line=5),),
        ),
        Note(label="settle it", message="size it as the others do"),
        Note(label="meets", message="torch.cat", span=Span(path="engine/d.py", line=9, column=2)),
    ),
    dims=DimPair(expected="target_hidden", found="draft_hidden"),
    cell="f(x)",
)
FAULT = Diagnostic(
    code="SHP903",
    name="unreadable-file",
    message="not analysed",
    severity=Severity.WARNING,
    primary=Span(path="engine/e.py", line=1),
)


def _log(*findings: Diagnostic, exit_code: int = 1) -> dict[str, Any]:
    text = render_sarif(
        findings, PAGES, version="0.1.0", summary={"files": 1, "seconds": 0.5}, exit_code=exit_code
    )
    assert text.endswith("}\n")
    log = json.loads(text)
    schema = json.loads(OFFICIAL.read_bytes())
    jsonschema.Draft4Validator(schema).validate(log)
    return log


@pytest.mark.parametrize(
    "findings",
    [
        (),
        (FINDING,),
        (FINDING, FAULT),
        (replace(FINDING, primary=None, notes=(), dims=None),),
        (replace(FAULT, code="SHP901", primary=None),),
    ],
)
def test_every_log_is_valid(findings: tuple[Diagnostic, ...]) -> None:
    assert _log(*findings)["version"] == "2.1.0"


def test_the_schema_is_the_one_that_the_log_names() -> None:
    assert json.loads(OFFICIAL.read_bytes())["id"] == SCHEMA


def test_the_schema_would_refuse_a_wrong_log() -> None:
    log = _log(FINDING)
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    schema = json.loads(OFFICIAL.read_bytes())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(schema).validate(log)


def test_the_consumer_leads_and_the_chain_is_related() -> None:
    (result,) = _log(FINDING)["runs"][0]["results"]
    (location,) = result["locations"]
    place = location["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "engine/a%20b%20%C3%B1.py"
    assert place["region"] == {"startLine": 3, "startColumn": 7}
    related = [
        (
            one["id"],
            one["message"]["text"],
            one["physicalLocation"]["artifactLocation"]["uri"],
            one["physicalLocation"]["region"]["startLine"],
        )
        for one in result["relatedLocations"]
    ]
    assert related == [
        (1, "read: config.hidden_size", "engine/c.py", 1),
        (2, "other callers", "engine/f.py", 5),
        (3, "meets: torch.cat", "engine/d.py", 9),
    ]
    assert result["message"]["text"] == (
        "draft_hidden passed to f(x=)\nother callers: engine/f.py:5:1 x\n"
        "settle it: size it as the others do"
    )
    assert result["properties"] == {
        "certainty": "may",
        "cell": "f(x)",
        "expected": "target_hidden",
        "found": "draft_hidden",
    }


def test_results_point_at_their_rules() -> None:
    (run,) = _log(FINDING)["runs"]
    (result,) = run["results"]
    rules = run["tool"]["driver"]["rules"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "SHP302"
    assert rules[result["ruleIndex"]]["name"] == "OddOneOut"
    assert [rule["id"] for rule in rules] == sorted(rule.code for rule in RULES)


def test_faults_of_the_tool_are_notifications() -> None:
    (run,) = _log(FAULT, exit_code=2)["runs"]
    assert run["results"] == []
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["descriptor"]["id"] == "SHP903"
    assert notification["level"] == "warning"
