"""`shapecheck explain CODE` and `shapecheck rules`: the pages of the rules."""

from __future__ import annotations

import sys

import click


@click.command(name="explain")
@click.argument("code", metavar="CODE")
def explain(code: str) -> None:
    """Print the page of one rule: what it does, why, an example, what to write instead."""
    from shapecheck.errors import ShapecheckError
    from shapecheck.rules.registry import find_rule

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
    """List every rule: code, name, severity and what it is about."""
    from shapecheck.rules.registry import RULES

    for rule in sorted(RULES, key=lambda one: one.code):
        click.echo(f"{rule.code}  {rule.name:<20} {rule.severity:<8} {rule.summary}")
