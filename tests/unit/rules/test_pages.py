"""`explain` and `rules` show every rule."""

from __future__ import annotations

from click.testing import CliRunner

from shapecheck.cli.explain import explain, rules
from shapecheck.diagnostics.codes import NAMES
from shapecheck.diagnostics.elsewhere import ELSEWHERE
from shapecheck.rules.registry import RULES


def test_explain_prints_the_page_and_the_examples() -> None:
    result = CliRunner().invoke(explain, ["shp302"])
    assert result.exit_code == 0
    assert result.output.startswith("# SHP302 odd-one-out")
    assert "## Example" in result.output
    assert "# error: SHP302" in result.output


def test_explain_takes_a_name() -> None:
    assert CliRunner().invoke(explain, ["owners-meet"]).exit_code == 0


def test_explain_of_a_typo_names_the_nearest() -> None:
    result = CliRunner().invoke(explain, ["SHP3O2"])
    assert result.exit_code == 2
    assert "did you mean SHP302" in result.stderr


def test_rules_lists_every_code() -> None:
    output = CliRunner().invoke(rules).output
    assert [line.split()[0] for line in output.splitlines()] == sorted(NAMES)


def test_a_code_is_explained_by_its_rule_or_elsewhere() -> None:
    ruled = {one.code for one in RULES}
    assert not ruled & ELSEWHERE.keys()
    result = CliRunner().invoke(explain, ["SHP205"])
    assert result.exit_code == 0
    assert result.output.startswith("# SHP205 wrong-class\n")
    assert "or make the annotation Optional" in result.output
