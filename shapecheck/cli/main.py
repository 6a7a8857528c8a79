"""The `shapecheck` command: subcommands load when asked for, and every fault ends in one place."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper
from typing import NamedTuple

import click

from shapecheck.cli.faults import CLEAN, FAULT, report_fault
from shapecheck.cli.installation import foreign_distribution


class _Entry(NamedTuple):
    """Where a command lives and its line of help, so that listing commands imports none of them."""

    module: str
    attribute: str
    help: str


_COMMANDS = {
    "lint": _Entry("shapecheck.cli.lint", "lint", "Find sizes of the wrong model in source."),
    "pair": _Entry("shapecheck.cli.pair", "pair", "Check a target/draft pair by its two configs."),
    "demo": _Entry("shapecheck.cli.demo", "demo", "Watch a public bug being found, in a minute."),
    "explain": _Entry("shapecheck.cli.explain", "explain", "Explain a diagnostic code."),
    "rules": _Entry("shapecheck.cli.explain", "rules", "List every diagnostic code."),
    "trace": _Entry("shapecheck.cli.trace", "trace", "Run phases on symbolic sizes, no weights."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands this installation has, in the order of the help page."""
        return [name for name, entry in _COMMANDS.items() if find_spec(entry.module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None when there is none of that name."""
        entry = _COMMANDS.get(cmd_name)
        if entry is None or not find_spec(entry.module):
            return None
        command = getattr(import_module(entry.module), entry.attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, written from their one-line helps."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name].help) for name in self.list_commands(ctx)])


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from shapecheck import __version__

        click.echo(f"shapecheck {__version__}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an internal error.")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Show the version and exit.",
)  # fmt: skip
def cli(debug: bool) -> None:
    """Contracts for tensors that cross a phase boundary of a draft/verify engine.

    Exit codes: 0 clean, 1 findings, 2 a fault of the input or the tool.
    """
    if debug:
        # Child processes of a command (lint workers, demo levels) read it too.
        os.environ["SHAPECHECK_DEBUG"] = "1"


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; no exception leaves this function."""
    words = sys.argv[1:] if args is None else list(args)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A file name may hold what the terminal's encoding cannot say.
            stream.reconfigure(errors="backslashreplace")
    try:
        clash = foreign_distribution()
        if clash:
            click.echo(clash, err=True)
            return FAULT
        # Not cli.main(): it ends a broken pipe with 1, which here means findings.
        with cli.make_context("shapecheck", words) as ctx:
            cli.invoke(ctx)
        sys.stdout.flush()
    except BaseException as error:
        return report_fault(error)
    return CLEAN
