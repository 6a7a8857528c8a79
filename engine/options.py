"""The command-line options that say which models run, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from engine.proposers.registry import PROPOSERS

F = TypeVar("F", bound=Callable[..., object])

one_width = click.option(
    "--num-draft-tokens", default=None, type=int, help="Verify width, with the root."
)
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
    click.option("--drafting", default="best", type=click.Choice(["best", "drawn"])),
    click.option(
        "--dtype", default="float32", type=click.Choice(["float32", "bfloat16", "float16"])
    ),
    click.option("--device", default="cpu", help="cpu or cuda."),
    click.option("--max-context", default=None, type=int, help="Longest request in tokens."),
    click.option(
        "--graphs/--no-graphs",
        default=None,
        help="Replay forwards on static buffers, at full context; by default on CUDA, as graphs.",
    ),
    click.option(
        "--backend",
        default="auto",
        type=click.Choice(["auto", "torch", "triton"]),
        help="Kernels; auto takes Triton's for 16-bit models on CUDA.",
    ),
    click.option(
        "--batch-invariant",
        is_flag=True,
        help="Sums of decoded and verified rows do not depend on what runs beside them.",
    ),
)


def model_options(command: F) -> F:
    """The command takes these as keyword arguments, named as in EngineConfig; no width yet."""
    for option in reversed(_MODEL_OPTIONS):
        command = option(command)
    return command
