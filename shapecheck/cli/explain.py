"""`shapecheck explain CODE` and `shapecheck rules`: the pages of the codes."""

from __future__ import annotations

import sys
import textwrap

import click


@click.command(name="explain")
@click.argument("code", metavar="CODE")
def explain(code: str) -> None:
    """Print the page of one code: what it does, why, an example, what to write instead."""
    from shapecheck.diagnostics.codes import NAMES
    from shapecheck.diagnostics.elsewhere import ELSEWHERE
    from shapecheck.errors import ShapecheckError
    from shapecheck.rules.registry import find_rule

    for known, text in ELSEWHERE.items():
        if code.strip().upper() == known or code.strip().lower() == NAMES[known]:
            click.echo(f"# {known} {NAMES[known]}\n\n{textwrap.fill(text, 88)}")
            return
    try:
        rule = find_rule(code)
    except ShapecheckError as error:
        click.echo(f"shapecheck explain: {error}", err=True)
        sys.exit(2)
    click.echo(f"# {rule.page.strip()}")
    for title, text in (("Example", rule.bad), ("Clean", rule.good)):
        if text:
            click.echo(f"\n## {title}\n\n```python\n{text.strip()}\n```")


@click.command(name="rules")
def rules() -> None:
    """List every code: its name, severity and what it is about."""
    from shapecheck.diagnostics.codes import NAMES
    from shapecheck.diagnostics.elsewhere import ELSEWHERE
    from shapecheck.rules.registry import RULES

    rows = [(rule.code, rule.name, str(rule.severity), rule.summary) for rule in RULES]
    rows += [
        (code, NAMES[code], "error", f"{text.partition('. ')[0]}.")
        for code, text in ELSEWHERE.items()
    ]
    for code, name, severity, summary in sorted(rows):
        click.echo(f"{code}  {name:<20} {severity:<8} {summary}")
