"""The formats that lint and trace share: findings as text for a tool or a line for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shapecheck.diagnostics.model import Diagnostic

FORMATS = ("full", "concise", "json", "github", "sarif")
# Code hosts take their paths for those of the checkout.
FROM_HERE = ("github", "sarif")


def formatted(
    findings: Sequence[Diagnostic],
    output_format: str,
    *,
    summary: Mapping[str, object],
    status: int,
) -> str:
    """Everything that goes to stdout; `status` is the exit code that the run ends with."""
    if output_format == "json":
        from shapecheck.diagnostics.json import render_json

        return render_json(findings, summary)
    if output_format == "sarif":
        return _sarif(findings, summary, status)
    if output_format == "github":
        from shapecheck.diagnostics.github import render_github

        return "".join(f"{render_github(one)}\n" for one in findings)
    if output_format == "concise":
        from shapecheck.diagnostics.concise import render_concise

        return "".join(f"{render_concise(one)}\n" for one in findings)
    from shapecheck.diagnostics.full import render_full

    return "\n\n".join(render_full(one) for one in findings) + "\n" * bool(findings)


def _sarif(findings: Sequence[Diagnostic], summary: Mapping[str, object], status: int) -> str:
    from shapecheck import __version__
    from shapecheck.diagnostics.sarif import RulePage, render_sarif
    from shapecheck.rules.registry import RULES

    pages = {
        rule.code: RulePage(
            code=rule.code,
            name=rule.name,
            summary=rule.summary,
            page=rule.page.strip(),
            severity=rule.severity,
        )
        for rule in RULES
    }
    return render_sarif(
        findings, list(pages.values()), version=__version__, summary=summary, exit_code=status
    )
