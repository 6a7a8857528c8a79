"""A progress bar on stderr, for a person who waits; it leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


@contextmanager
def progress_bar() -> Generator[Callable[[int, int], None]]:
    """While the context lasts, the function it gives shows how many of how many are done."""
    columns = TextColumn("analysing"), BarColumn(), MofNCompleteColumn(), TextColumn("functions")
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("analysing", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield show
