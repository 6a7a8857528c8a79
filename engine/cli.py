"""The command line: `run` continues a prompt, `bench` measures (engine.bench)."""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn

import click

from engine.bench.command import bench
from engine.config import EngineConfig
from engine.errors import EngineError
from engine.llm import LLM
from engine.options import model_options, one_width
from engine.sampling import SamplingParams
from shapecheck.errors import ShapecheckError


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
@one_width
@model_options
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
    click.echo(llm.metrics().figures(), err=True)


commands.add_command(bench)


def _standard_input() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise EngineError(f"standard input is no text ({error}); give it as UTF-8") from None


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
