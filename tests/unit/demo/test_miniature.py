"""What the demo lints offline has one finding, at the line that took the wrong width."""

from __future__ import annotations

from pathlib import Path

from shapecheck.demo import stage


def test_the_linter_finds_the_odd_caller_and_nothing_else() -> None:
    report, why_not = stage.lint(str(stage.MINIATURE))
    assert why_not == ""
    assert report is not None
    (finding,) = report["findings"]
    assert finding["code"] == "SHP302"
    assert finding["dims"] == {"expected": "target_hidden", "found": "draft_hidden"}
    lines = Path(stage.MINIATURE, "worker.py").read_text().splitlines()
    wrong = lines[finding["primary"]["line"] - 1]
    assert "hidden_size=self.model_config.hidden_size" in wrong
