"""`python -m engine bench`: a real pair against plain decoding, or random weights at any sizes."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import torch
from click.core import ParameterSource

from engine.bench.card import measured_card
from engine.bench.compare import BENCH_PROMPT, Compared, compare
from engine.bench.report import acceptance_label, line, measured_report, sweep_report
from engine.bench.sweep import Plan, sweep
from engine.config import EngineConfig
from engine.models.config import ModelConfig
from engine.models.published import PUBLISHED, shape_named
from engine.observe.spans import Spans
from engine.options import model_options

# Beyond any batch or tree, and a range of as many numbers still fits in memory.
_DIGITS = 6
_RANDOM_ALONE = ("synthetic_accept", "context", "profile")
_PAIR_ALONE = (
    *("prompt", "max_tokens", "target", "draft", "algorithm"),
    *("num_steps", "topk", "drafting", "max_context"),
)


class Numbers(click.ParamType):
    """Positive whole numbers: "1,8,32", and "1..16" for all from one to the other."""

    name = "numbers"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        found: list[int] = []
        for part in str(value).split(","):
            first, dots, last = part.partition("..")
            if not first.isdecimal() or (dots and not last.isdecimal()):
                self.fail(f"{part!r} is no number; write 1,8,32 or 1..16", param, ctx)
            if max(len(first), len(last)) > _DIGITS or (dots and int(last) < int(first)):
                self.fail(
                    f"{part!r} has no end in reach; write the smaller number first, with at most "
                    f"{_DIGITS} digits",
                    param,
                    ctx,
                )
            found += range(int(first), int(last or first) + 1)
        if not found or min(found) < 1:
            self.fail(f"{min(found, default=0)} is not in the range x>=1", param, ctx)
        return tuple(found)


@click.command()
@click.option("--prompt", default=BENCH_PROMPT, help="The text that every request continues.")
@click.option("--max-tokens", default=64, help="Tokens of each request.")
@click.option("--requests", default="1", type=Numbers(), help="How many requests run together.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--random",
    "shapes",
    default=None,
    help="TARGET,DRAFT: random weights of these shapes, made on the device; "
    f"{', '.join(PUBLISHED)}, or the path of a config.json.",
)
@click.option(
    "--synthetic-accept",
    default=0.8,
    type=click.FloatRange(0, 1),
    show_default=True,
    help="With --random: the probability with which a drafted token is kept.",
)
@click.option(
    "--context", default=1024, type=click.IntRange(min=1), help="With --random: prompt tokens."
)
@click.option(
    "--iterations",
    default=None,
    type=click.IntRange(min=0),
    help="Turns of the steady state that are timed; 20 with --random, else none.",
)
@click.option(
    "--num-draft-tokens",
    default=None,
    type=Numbers(),
    help="Verify width, with the root; several with --random, where it says the draft depth.",
)
@click.option(
    "--profile/--no-profile",
    default=True,
    help="With --random on CUDA: the idle share, by torch's profiler.",
)
@click.option("--trace", type=click.Path(path_type=Path), help="Write a Perfetto trace here.")
@model_options
def bench(
    prompt: str,
    max_tokens: int,
    requests: tuple[int, ...],
    as_json: bool,
    shapes: str | None,
    synthetic_accept: float,
    context: int,
    iterations: int | None,
    num_draft_tokens: tuple[int, ...] | None,
    profile: bool,
    trace: Path | None,
    **settings: object,
) -> None:
    """Time per phase, tokens per second, and how near the device's limits they are.

    Without --random: greedy decoding plain and with the algorithm, in one process. With --random:
    every --requests by every --num-draft-tokens, the number of verify rows.
    """
    _refuse(_RANDOM_ALONE if shapes is None else _PAIR_ALONE, random=shapes is not None)
    if trace is not None and not trace.absolute().parent.is_dir():
        raise click.UsageError(f"--trace {trace}: its folder does not exist; make it first")
    spans = None if trace is None else Spans()
    if shapes is None:
        _compare(
            {**settings, "num_draft_tokens": _one(num_draft_tokens, "--num-draft-tokens")},
            prompt=prompt,
            max_tokens=max_tokens,
            requests=_one(requests, "--requests") or 1,
            iterations=iterations or (1 if spans else 0),
            as_json=as_json,
            spans=spans,
        )
    else:
        if iterations == 0:
            raise click.UsageError("--iterations 0 measures nothing with --random; give 1 or more")
        target, draft = _shapes(shapes)
        plan = Plan(
            target=target,
            draft=draft,
            acceptance=synthetic_accept,
            context=context,
            iterations=20 if iterations is None else iterations,
            requests=requests,
            num_draft_tokens=num_draft_tokens or (5,),
            settings=_random_settings(settings),
        )
        _sweep(plan, as_json=as_json, profile=profile, spans=spans)
    if spans is not None and trace is not None:
        spans.write(trace)


def _refuse(names: Sequence[str], *, random: bool) -> None:
    """UsageError for an option that would have no effect on what is measured."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            where = "with --random" if random else "without --random"
            raise click.UsageError(f"{option} has no effect {where}; leave it out")


def _one(numbers: tuple[int, ...] | None, option: str) -> int | None:
    if numbers is None:
        return None
    if len(numbers) != 1:
        raise click.UsageError(f"{option} takes several numbers with --random only; give one")
    return numbers[0]


def _shapes(names: str) -> tuple[ModelConfig, ModelConfig]:
    parts = names.split(",")
    if len(parts) != 2:
        raise click.UsageError(f"--random is TARGET,DRAFT, not {names!r}; name two shapes")
    return shape_named(parts[0]), shape_named(parts[1])


def _random_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Where nothing was said: the device that is there, its fast dtype, and graphs."""
    cuda = torch.cuda.is_available()
    chosen = {
        "device": "cuda" if cuda else "cpu",
        "dtype": "bfloat16" if cuda else "float32",
        "graphs": True,
        "backend": settings["backend"],
        "batch_invariant": settings["batch_invariant"],
    }
    context = click.get_current_context()
    for name in chosen:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            chosen[name] = settings[name]
    return chosen


def _sweep(plan: Plan, *, as_json: bool, profile: bool, spans: Spans | None) -> None:
    config = plan.config(1, 1)
    card = measured_card(torch.device(config.device), config.torch_dtype)
    pair = plan.pair()
    points = []
    click.echo(acceptance_label(plan), err=as_json)
    for point in sweep(plan, pair, profile=profile, spans=spans):
        points.append(point)
        # Printed as it comes: a long sweep that is stopped has said something.
        click.echo(line(point, card), err=as_json)
    if as_json:
        command = shlex.join(["python", "-m", "engine", *sys.argv[1:]])
        click.echo(json.dumps(sweep_report(plan, points, card, command=command), indent=2))


def _compare(
    settings: dict[str, object],
    *,
    prompt: str,
    max_tokens: int,
    requests: int,
    iterations: int,
    as_json: bool,
    spans: Spans | None,
) -> None:
    algorithm = EngineConfig.of(**settings).algorithm
    found = compare(
        settings,
        prompt=prompt,
        max_tokens=max_tokens,
        requests=requests,
        iterations=iterations,
        spans=spans,
    )
    plain, other = found["none"], found[algorithm]
    same = plain.token_ids == other.token_ids
    if as_json:
        runs = {name: _as_json(one) for name, one in found.items()}
        click.echo(json.dumps({"same_tokens": same, "runs": runs}))
        return
    for name, one in found.items():
        click.echo(f"{name:11} {one.snapshot.figures()}")
        click.echo(f"{'':11} contracts {one.contract_seconds * 1e6:.0f} us an iteration")
    ratio = other.snapshot.tokens_per_second / plain.snapshot.tokens_per_second
    verdict = "the same tokens" if same else "OTHER tokens"
    click.echo(f"{algorithm} is {ratio:.2f} times as fast as plain decoding, {verdict}")


def _as_json(one: Compared) -> dict[str, object]:
    snapshot = one.snapshot
    return {
        "tokens_per_second": snapshot.tokens_per_second,
        "accept_length": snapshot.accept_length,
        "acceptance_by_position": snapshot.acceptance_by_position,
        "seconds": snapshot.seconds,
        "busy_seconds": snapshot.busy_seconds,
        "contract_seconds_per_iteration": one.contract_seconds,
        "output_tokens": snapshot.output_tokens,
        "steady_state": None if one.steady is None else measured_report(one.steady),
    }
