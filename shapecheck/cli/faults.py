"""The one place where an exception becomes a message and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback

import click

from shapecheck.errors import ShapecheckError

CLEAN, FINDINGS, FAULT = 0, 1, 2
_INTERRUPTED = 130
_BROKEN_PIPE = 141
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def report_fault(error: BaseException) -> int:
    """Tell the user what went wrong, on stderr, and give the exit code that says so."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAULT if error.code else CLEAN
    if isinstance(error, click.ClickException):
        error.show()
        return FAULT
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        click.echo("shapecheck: interrupted", err=True)
        return _INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # The reader has gone (`| head`): without this the interpreter complains at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    if isinstance(error, ShapecheckError):
        click.echo(f"shapecheck: {error}", err=True)
        _traceback(error)
        return FAULT
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        click.echo(f"shapecheck: {error.strerror}; free some room and run again", err=True)
        return FAULT
    what = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    remedy = "run again with SHAPECHECK_DEBUG=1 for the traceback and report it as a bug"
    click.echo(f"shapecheck: SHP901 internal-error: {what}; {remedy}", err=True)
    _traceback(error)
    return FAULT


def _traceback(error: BaseException) -> None:
    if os.environ.get("SHAPECHECK_DEBUG", "") not in ("", "0"):
        traceback.print_exception(error)
