"""`shapecheck lint`: whole-program owner analysis of source that is never run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from shapecheck.static.report import Report

_FORMATS = ("full", "concise", "json")


@click.command(name="lint")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--output-format",
    type=click.Choice(_FORMATS),
    default="full",
    show_default=True,
    help="How findings are written to stdout.",
)
@click.option("--select", multiple=True, metavar="CODES", help="Report only these codes.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Do not report these codes.")
@click.option("--pack", "pack_paths", multiple=True, metavar="PATH", help="Read this pack.")
@click.option("--no-packs", is_flag=True, help="Read none of the packs that come with shapecheck.")
@click.option("--statistics", is_flag=True, help="Show on stderr what the run resolved.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 even when there are findings.")
def lint(
    targets: tuple[str, ...],
    output_format: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    pack_paths: tuple[str, ...],
    no_packs: bool,
    statistics: bool,
    exit_zero: bool,
) -> None:
    """Find the line that chose the wrong model's size, without running anything.

    TARGET is a file, a folder, or pypi:NAME==VERSION[:SUBPATH], which is fetched with pip as a
    wheel and never imported.

    Exit status: 0 clean, 1 findings, 2 when the input is at fault or nothing could be resolved.
    """
    from shapecheck.errors import ShapecheckError
    from shapecheck.static.report import run

    try:
        report = run(
            targets,
            select=_codes(select),
            ignore=_codes(ignore),
            packs=not no_packs,
            pack_paths=pack_paths,
        )
    except ShapecheckError as error:
        click.echo(f"shapecheck lint: {error}", err=True)
        sys.exit(2)
    _write(report, output_format)
    for line in report.summary_lines(verbose=statistics):
        click.echo(line, err=True)
    status = report.exit_status
    sys.exit(0 if exit_zero and status == 1 else status)


def _codes(given: tuple[str, ...]) -> frozenset[str]:
    return frozenset(
        code.strip().upper() for one in given for code in one.split(",") if code.strip()
    )


def _write(report: Report, output_format: str) -> None:
    if output_format == "json":
        from shapecheck.diagnostics.json import render_json

        click.echo(render_json(report.findings, report.summary()), nl=False)
        return
    if output_format == "concise":
        from shapecheck.diagnostics.concise import render_concise as render
    else:
        from shapecheck.diagnostics.full import render_full as render
    separator = "\n" if output_format == "concise" else "\n\n"
    if report.findings:
        click.echo(separator.join(render(finding) for finding in report.findings))
