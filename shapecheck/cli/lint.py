"""`shapecheck lint`: whole-program owner analysis of source that is never run."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import click

from shapecheck.cli.formats import FORMATS

if TYPE_CHECKING:
    from shapecheck.cli.lint_run import Asked
    from shapecheck.static.workers import Progress


@click.command(name="lint")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--output-format",
    type=click.Choice(FORMATS),
    help="How findings are written to stdout.  [default: full]",
)
@click.option("--select", multiple=True, metavar="CODES", help="Report only these codes.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Do not report these codes.")
@click.option(
    "--per-file-ignores",
    multiple=True,
    metavar="PATTERN:CODES",
    help="Do not report these codes in files that match.",
)
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave these files out.")
@click.option("--baseline", metavar="FILE", help="Do not report the findings of this file.")
@click.option("--write-baseline", metavar="FILE", help="Keep the findings in a file; exit 0.")
@click.option("--diff-base", metavar="REV", help="Report what touches lines changed since REV.")
@click.option("--config", metavar="FILE", help="The pyproject.toml with [tool.shapecheck].")
@click.option("--cache/--no-cache", default=None, help="Reuse the last result.  [default: cache]")
@click.option("--stdin-filename", metavar="PATH", help="What the source on stdin (-) is called.")
@click.option("--pack", "pack_paths", multiple=True, metavar="PATH", help="Read this pack.")
@click.option("--no-packs", is_flag=True, help="Read none of the packs that come with shapecheck.")
@click.option("--statistics", is_flag=True, help="Show on stderr what the run resolved.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 even when there are findings.")
def lint(
    targets: tuple[str, ...],
    output_format: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    per_file_ignores: tuple[str, ...],
    exclude: tuple[str, ...],
    baseline: str | None,
    write_baseline: str | None,
    diff_base: str | None,
    config: str | None,
    cache: bool | None,
    stdin_filename: str | None,
    pack_paths: tuple[str, ...],
    no_packs: bool,
    statistics: bool,
    exit_zero: bool,
) -> None:
    """Find the line that chose the wrong model's size, without running anything.

    TARGET is a file, a folder, - for source on stdin, or pypi:NAME==VERSION[:SUBPATH], which is
    fetched with pip as a wheel and never imported. CODES are codes or prefixes of them (SHP3),
    separated by commas.

    Exit status: 0 clean, 1 findings, 2 when the input or the tool is at fault or nothing could be
    resolved.
    """
    from shapecheck.cli.lint_output import findings_text, summary_lines
    from shapecheck.cli.lint_run import Asked, lint_targets
    from shapecheck.cli.lint_settings import Given
    from shapecheck.errors import ShapecheckError

    asked = Asked(
        targets=targets,
        given=Given(
            output_format=output_format,
            select=select,
            ignore=ignore,
            per_file_ignores=per_file_ignores,
            exclude=exclude,
            packs=pack_paths,
            baseline=baseline,
            cache=cache,
            config=config,
        ),
        write_baseline=write_baseline,
        diff_base=diff_base,
        stdin_filename=stdin_filename,
        shipped_packs=not no_packs,
    )
    try:
        with _progress() as progress:
            done = lint_targets(asked, _stdin(asked), progress)
    except ShapecheckError as error:
        click.echo(f"shapecheck lint: {error}", err=True)
        sys.exit(2)
    status = done.exit_status
    if exit_zero and status == 1:
        status = 0
    click.echo(findings_text(done.left, done.output_format, status), nl=False)
    for line in [*summary_lines(done.left, statistics=statistics), *done.remarks]:
        click.echo(line, err=True)
    sys.exit(status)


def _stdin(asked: Asked) -> bytes | None:
    from shapecheck.static.loader import MAX_BYTES

    if "-" not in asked.targets:
        return None
    # One byte more than a file may have is enough to refuse it.
    return sys.stdin.buffer.read(MAX_BYTES + 1) if sys.stdin is not None else b""


def _progress() -> AbstractContextManager[Progress | None]:
    if not sys.stderr.isatty():
        return nullcontext()
    from shapecheck.cli.progress import progress_bar

    return progress_bar()
