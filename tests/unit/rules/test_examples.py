"""The examples in every rule's module: the bad one is reported where it says, the good one not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shapecheck.rules.registry import RULES
from shapecheck.static.report import run

WITH_EXAMPLES = [rule for rule in RULES if rule.bad]


def _codes(folder: Path, text: str) -> set[tuple[int, str]]:
    (folder / "example.py").write_text(text, encoding="utf-8")
    report = run((str(folder),))
    return {(one.primary.line, one.code) for one in report.findings if one.primary}


@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=lambda rule: rule.code)
def test_bad_example_is_reported(rule, tmp_path: Path) -> None:
    marked = {
        (number, code)
        for number, line in enumerate(rule.bad.splitlines(), 1)
        for code in re.findall(r"# error: (SHP\d+)", line)
    }
    assert marked
    assert _codes(tmp_path, rule.bad) == marked


@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=lambda rule: rule.code)
def test_bad_example_is_reported_among_functions_about_something_else(rule, tmp_path: Path) -> None:
    others = "".join(f"\n\ndef other_{i}(x):\n    y = x + {i}\n    return y\n" for i in range(120))
    assert _codes(tmp_path, rule.bad + others) == _codes(tmp_path, rule.bad)


@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=lambda rule: rule.code)
def test_good_example_is_clean(rule, tmp_path: Path) -> None:
    assert "# error" not in rule.good
    assert _codes(tmp_path, rule.good) == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_page_is_whole(rule) -> None:
    assert rule.page.startswith(f"{rule.code} {rule.name}:")
    for heading in ("## What it does", "## Why", "## Instead", "## How to silence"):
        assert heading in rule.page


def test_codes_are_unique() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES)
