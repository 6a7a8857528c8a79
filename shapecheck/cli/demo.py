"""`shapecheck demo`: a public bug found in source, caught at its producer, and what that costs."""

from __future__ import annotations

import time

import click
from rich.console import Console

from shapecheck.config import settings
from shapecheck.demo import stage
from shapecheck.errors import ShapecheckError

_FOUND = 3  # the places of the public bug; the release has more findings


@click.command()
def demo() -> None:
    """Find a public bug in a released engine, then run one like it with and without contracts."""
    settings()  # a flag that stops every child stops here, before the linter has run
    console, start = Console(highlight=False), time.monotonic()
    _lint(console)
    if missing := stage.missing():
        console.rule("b, c: not shown")
        _say(
            console,
            f"The engine needs {', '.join(missing)}. In this checkout: pip install -e '.[engine]'",
        )
        return
    _levels(console)
    _healthy(console)
    console.rule(f"{time.monotonic() - start:.0f} seconds")


def _lint(console: Console) -> None:
    console.rule("a: the linter on a release")
    with console.status("reading the release"):
        scene = stage.lint_release()
    if scene.release is None:
        _say(console, f"The release could not be fetched ({scene.why_not}).")
        _say(console, f"Linted the bundled miniature of it instead: {stage.MINIATURE}")
    else:
        _say(console, "sglang 0.5.11 sized two tensors from the wrong model (its issue 24215).")
        _say(console, f"shapecheck lint '{scene.release}'  ({scene.files} files, none imported)")
    for finding in scene.findings[:_FOUND]:
        _say(console, f"\n{finding.line}")
        for step in finding.chain:
            _say(console, f"  {step}")
    more = len(scene.findings) - _FOUND
    if more > 0:
        _say(console, f"\nand {more} more: shapecheck lint '{scene.release or stage.MINIATURE}'")
    if not scene.findings:
        raise ShapecheckError(
            "the linter found nothing where a bug is known; run the same target with "
            "`shapecheck lint --statistics` and report it"
        )


def _levels(console: Console) -> None:
    console.rule("b: the engine, with an idle placeholder of the target's width")
    with console.status("SHAPECHECK=off: no checks"):
        off = stage.mistaken("off")
    with console.status("SHAPECHECK=strict"):
        strict = stage.mistaken("strict")
    if not off.error or "ShapeContractError" not in strict.error:
        raise ShapecheckError(
            "the mistaken rank was expected to crash under off and to be named under strict; "
            f"off: {off.error or 'no error'}; strict: {strict.error or 'no error'}"
        )
    _say(console, "SHAPECHECK=off crashes late, where two batches meet:")
    _say(console, off.error)
    _say(console, f"  raised in {' <- '.join(off.stack)}")
    _say(console, "  the method that chose the width, MistakenProposer.idle, has long returned\n")
    _say(console, "SHAPECHECK=strict stops at the producer and names both dimensions:")
    _say(console, strict.error.partition(": ")[2])


def _healthy(console: Console) -> None:
    console.rule("c: the engine without the mistake, under SHAPECHECK=strict")
    with console.status("serving and measuring"):
        found = stage.healthy()
    if not found.same_tokens:
        raise ShapecheckError(
            "the engine and plain decoding disagree on the tokens; report it as a bug"
        )
    _say(console, f"{found.requests} requests, EAGLE-3, the very tokens of plain decoding")
    _say(console, f"an iteration       {found.iteration_seconds * 1e6:8.1f} microseconds")
    _say(console, f"contracts in it    {found.contract_seconds * 1e6:8.1f} microseconds")
    _say(
        console,
        f"The contracts cost {found.contract_seconds / found.iteration_seconds:.1%} of an "
        "iteration of these tiny models.",
    )
    _say(
        console, "The cost is per crossing, so it is a smaller share of a larger model's iteration."
    )


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)
