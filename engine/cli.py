"""The command line: `run` continues a prompt, `bench` compares an algorithm with plain decoding."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

import click

from engine.config import EngineConfig
from engine.errors import EngineError
from engine.llm import LLM
from engine.observe.metrics import Snapshot
from engine.proposers.registry import PROPOSERS
from engine.sampling import SamplingParams
from shapecheck.errors import ShapecheckError

F = TypeVar("F", bound=Callable[..., object])

# Text that repeats itself, as edits and extractions do: what prompt lookup is for.
_FUNCTIONS = (
    "def area(width, height):\n    return width * height\n\n"
    "def volume(width, height, depth):\n    return width * height * depth\n\n"
)
BENCH_PROMPT = 2 * _FUNCTIONS + "def area("
_MODEL_OPTIONS = (
    click.option(
        "--target", default="smollm2", help="smollm2, a folder, a .gguf file, or tiny (seeded)."
    ),
    click.option("--draft", default=None, help="Folder of the draft model or head."),
    click.option(
        "--algorithm",
        default="ngram",
        type=click.Choice(list(PROPOSERS)),
        help="How tokens are proposed; none is plain decoding.",
    ),
    click.option("--num-steps", default=4, help="Draft depth."),
    click.option("--topk", default=1, help="Branching of the draft tree."),
    click.option("--num-draft-tokens", default=None, type=int, help="Verify width, with the root."),
    click.option("--drafting", default="best", type=click.Choice(["best", "drawn"])),
    click.option(
        "--dtype", default="float32", type=click.Choice(["float32", "bfloat16", "float16"])
    ),
    click.option("--device", default="cpu", help="cpu or cuda."),
    click.option("--max-context", default=None, type=int, help="Longest request in tokens."),
    click.option(
        "--graphs/--no-graphs",
        default=False,
        help="Replay forwards on static buffers, at full context.",
    ),
)


def _model_options(command: F) -> F:
    for option in reversed(_MODEL_OPTIONS):
        command = option(command)
    return command


@click.group()
def commands() -> None:
    """A draft/verify engine for speculative decoding."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)


@commands.command()
@click.option("--prompt", required=True, help="The text to continue; - reads standard input.")
@click.option("--chat", is_flag=True, help="Wrap the prompt in the model's chat template.")
@click.option("--max-tokens", default=128, help="How many tokens at most.")
@click.option("--temperature", default=0.0, help="0 takes the best token always.")
@click.option("--top-p", default=1.0, help="Keep the most probable tokens of this mass.")
@click.option("--top-k", default=0, help="Keep this many tokens; 0 keeps all.")
@click.option("--seed", default=0, help="Equal seeds give equal texts.")
@click.option("--stop", multiple=True, help="A text that ends the output; may be repeated.")
@_model_options
def run(
    prompt: str,
    chat: bool,
    max_tokens: int,
    temperature: float,
    top_p: float,
    top_k: int,
    seed: int,
    stop: tuple[str, ...],
    **settings: object,
) -> None:
    """Continue a prompt; the text goes to standard output, figures to standard error."""
    params = SamplingParams(
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        seed=seed,
        stop=stop,
    )
    text = _standard_input() if prompt == "-" else prompt
    llm = LLM.of(EngineConfig.of(**settings))
    if chat:
        text = llm.tokenizer.chat([{"role": "user", "content": text}])
    for piece in llm.stream(text, params):
        click.echo(piece.text, nl=False)
    click.echo()
    click.echo(_figures(llm.metrics()), err=True)


@commands.command()
@click.option("--prompt", default=BENCH_PROMPT, help="The text that every request continues.")
@click.option("--max-tokens", default=64, help="Tokens of each request.")
@click.option(
    "--requests", default=1, type=click.IntRange(min=1), help="How many requests run together."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_model_options
def bench(prompt: str, max_tokens: int, requests: int, as_json: bool, **settings: object) -> None:
    """Greedy tokens per second of plain decoding and of the algorithm, in one process."""
    params = SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)
    config = EngineConfig.of(**settings)
    plain = {**settings, "algorithm": "none", "draft": None, "topk": 1, "num_draft_tokens": None}
    results: dict[str, Snapshot] = {}
    contracts: dict[str, float] = {}
    outputs: dict[str, list[tuple[int, ...]]] = {}
    for name, chosen in (("none", EngineConfig.of(**plain)), (config.algorithm, config)):
        llm = LLM.of(chosen)
        llm.generate(prompt, SamplingParams(max_tokens=2, temperature=0.0))
        llm.reset_metrics()
        found = llm.generate([prompt] * requests, params)
        outputs[name] = [output.token_ids for output in found]
        results[name] = llm.metrics()
        contracts[name] = llm.contract_seconds(prompt)
    same = outputs["none"] == outputs[config.algorithm]
    if as_json:
        click.echo(json.dumps(_as_json(results, contracts, same)))
        return
    for name, snapshot in results.items():
        click.echo(f"{name:11} {_figures(snapshot)}")
        click.echo(f"{'':11} contracts {contracts[name] * 1e6:.0f} us an iteration")
    ratio = results[config.algorithm].tokens_per_second / results["none"].tokens_per_second
    verdict = "the same tokens" if same else "OTHER tokens"
    click.echo(f"{config.algorithm} is {ratio:.2f} times as fast as plain decoding, {verdict}")


def _standard_input() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise EngineError(f"standard input is no text ({error}); give it as UTF-8") from None


def _as_json(
    results: Mapping[str, Snapshot], contracts: Mapping[str, float], same: bool
) -> dict[str, object]:
    return {
        "same_tokens": same,
        "runs": {
            name: {
                "tokens_per_second": snapshot.tokens_per_second,
                "accept_length": snapshot.accept_length,
                "acceptance_by_position": snapshot.acceptance_by_position,
                "seconds": snapshot.seconds,
                "busy_seconds": snapshot.busy_seconds,
                "contract_seconds_per_iteration": contracts[name],
                "output_tokens": snapshot.output_tokens,
            }
            for name, snapshot in results.items()
        },
    }


def _figures(snapshot: Snapshot) -> str:
    kept = " ".join(f"{share:.2f}" for share in snapshot.acceptance_by_position)
    times = ", ".join(f"{phase} {spent:.2f} s" for phase, spent in snapshot.seconds.items())
    return (
        f"{snapshot.output_tokens} tokens, {snapshot.tokens_per_second:.1f} tok/s, "
        f"accept length {snapshot.accept_length:.2f}"
        + (f" (by position {kept})" if kept else "")
        + f", {times}"
    )


def main() -> NoReturn:
    """Run a command; a fault of the input is one line on standard error and exit code 2."""
    try:
        commands(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("aborted", err=True)
        sys.exit(130)
    except ShapecheckError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader has left; what is still buffered must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except UnicodeEncodeError as error:
        click.echo(
            f"error: standard output cannot show the text ({error}); set PYTHONIOENCODING=utf-8",
            err=True,
        )
        sys.exit(2)
    sys.exit(0)
