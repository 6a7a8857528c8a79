"""`shapecheck trace`: run a function on symbolic sizes and report which had to be equal."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from shapecheck.cli.formats import FORMATS, formatted
from shapecheck.dims.configs import ALGORITHMS, Algorithm
from shapecheck.dims.model import Dims
from shapecheck.errors import ShapecheckError

if TYPE_CHECKING:
    from shapecheck.symbolic import Trace


@click.command()
@click.argument("target", metavar="MODULE:QUALNAME")
@click.option("--target", "target_config", type=click.Path(), help="config.json of the target.")
@click.option("--draft", "draft_config", type=click.Path(), help="config.json of the draft.")
@click.option("--algorithm", type=click.Choice(ALGORITHMS), help="How the draft is used.")
@click.option("--num-steps", type=int, default=3, show_default=True, help="Draft depth.")
@click.option("--topk", type=int, default=1, show_default=True, help="Branching of the tree.")
@click.option("--num-draft-tokens", type=int, help="Verify width, root included (num_steps+1).")
@click.option("--within", multiple=True, metavar="PACKAGE", help="Also trace len() there.")
@click.option(
    "--allow",
    multiple=True,
    metavar="'A == B: REASON'",
    help="An equality that the project requires.",
)
@click.option(
    "--output-format",
    type=click.Choice(FORMATS),
    default="full",
    show_default=True,
    help="How findings are written to stdout.",
)
@click.pass_context
def trace(
    ctx: click.Context,
    target: str,
    target_config: str | None,
    draft_config: str | None,
    algorithm: Algorithm | None,
    num_steps: int,
    topk: int,
    num_draft_tokens: int | None,
    within: tuple[str, ...],
    allow: tuple[str, ...],
    output_format: str,
) -> None:
    """Run MODULE:QUALNAME on fake tensors, with equal and unequal numbers behind the names.

    The function takes the trace as its only parameter, or carries a @contract that describes its
    arguments. No weights and no GPU are needed. Exit code 2 when nothing was checked.
    """
    if target_config is None:
        _refuse_sizes(ctx)
    dims = _dims(target_config, draft_config, algorithm, num_steps, topk, num_draft_tokens)
    reasons = _reasons(allow)
    from shapecheck.symbolic.sweep import sweep

    package = target.partition(":")[0].partition(".")[0]
    # What the traced code prints must not stand among the findings, which a program may read.
    with redirect_stdout(sys.stderr):
        function = _load(target)
        report = sweep(_subject(function, target), dims, within=(package, *within), allow=reasons)
    if output_format == "full":
        click.echo(report.text(), nl=False)
    else:
        summary, status = report.summary(), report.exit_code
        text = formatted(report.findings, output_format, summary=summary, status=status)
        click.echo(text, nl=False)
        click.echo(report.verdict(), err=True)
    if report.vacuous:
        click.echo(f"shapecheck: nothing was checked: {report.vacuous}", err=True)
    ctx.exit(report.exit_code)


def _refuse_sizes(ctx: click.Context) -> None:
    """ShapecheckError when a size was given that no Dims will hold."""
    for name in ("num_steps", "topk", "num_draft_tokens"):
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise ShapecheckError(
                f"{option} needs --target, without which every size is free; give the target's "
                f"config.json or leave {option} out"
            )


def _dims(
    target: str | None,
    draft: str | None,
    algorithm: Algorithm | None,
    num_steps: int,
    topk: int,
    num_draft_tokens: int | None,
) -> Dims | None:
    if target is None:
        if draft is not None or algorithm is not None:
            raise ShapecheckError("--draft and --algorithm need --target; give its config.json too")
        return None
    if algorithm is None:
        raise ShapecheckError(f"--target needs --algorithm: one of {', '.join(ALGORITHMS)}")
    return Dims.from_configs(
        target,
        draft,
        algorithm=algorithm,
        num_steps=num_steps,
        topk=topk,
        num_draft_tokens=num_draft_tokens,
    )


def _load(target: str) -> Callable[..., Any]:
    module_name, _, qualname = target.partition(":")
    if not module_name or not qualname:
        raise ShapecheckError(f"{target!r}: write MODULE:QUALNAME, as in engine.traced:run")
    if module_name.startswith(".") or module_name.endswith(".py") or os.sep in module_name:
        raise ShapecheckError(
            f"{target!r} names a file; write its module, as python -m does: engine.traced:run for "
            "engine/traced.py"
        )
    # Like `python -m`: modules of the current folder can be named.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise ShapecheckError(
            f"{target!r}: {module_name} cannot be imported ({error}); run where it is importable"
        ) from error
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ShapecheckError(
            f"{target!r}: {module_name} fails while it is imported ({said}); correct it until "
            f"`python -c 'import {module_name}'` passes"
        ) from error
    for name in qualname.split("."):
        value = getattr(value, name, None)
    if not callable(value):
        raise ShapecheckError(f"{target!r}: {module_name} has no function {qualname}; correct it")
    return value


def _subject(function: Callable[..., Any], target: str) -> Callable[[Trace], object]:
    from shapecheck.spec import contract_of

    if inspect.iscoroutinefunction(function):
        raise _never_runs(target, "a coroutine", "asyncio.run({0}(...))")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise _never_runs(target, "a generator", "for _ in {0}(...): pass")
    declared = contract_of(function)
    if declared is not None:
        if declared.receiver is not None and not inspect.ismethod(function):
            owner, _, method = target.partition(":")[2].rpartition(".")
            raise ShapecheckError(
                f"{target!r} is a method and needs its object; write a function "
                f"`def run(t): {owner}(t.dims).{method}(t.make(...))` and trace that"
            )
        return lambda t: t.call(function)
    try:
        parameters = len(inspect.signature(function).parameters)
    except ValueError:  # a function of C that says nothing of its parameters
        parameters = None
    if parameters != 1:
        raise ShapecheckError(
            f"{target!r}: neither takes the trace as its only parameter nor carries a @contract; "
            "write a function `def run(t): ...` that calls it with t.tensor(...)"
        )
    return function


def _never_runs(target: str, kind: str, form: str) -> ShapecheckError:
    name = target.partition(":")[2]
    return ShapecheckError(
        f"{target!r} is {kind}: a call would not run its body; write a function "
        f"`def run(t): {form.format(name)}` and trace that"
    )


def _reasons(allow: tuple[str, ...]) -> Mapping[str, str]:
    pairs: dict[str, str] = {}
    for text in allow:
        equality, colon, reason = text.partition(":")
        if not colon or not reason.strip():
            raise ShapecheckError(
                f"--allow {text!r}: write it with its reason, as 'target_vocab == draft_vocab: one "
                "tokenizer'"
            )
        pairs[equality.strip()] = reason.strip()
    return pairs
