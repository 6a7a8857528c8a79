"""`shapecheck pair`: can this draft serve this target, and every dimension with its origin."""

from __future__ import annotations

from collections.abc import Sequence

import click

from shapecheck.cli.faults import CLEAN, FINDINGS
from shapecheck.diagnostics import Diagnostic, Severity
from shapecheck.diagnostics.full import render_full
from shapecheck.diagnostics.json import render_json
from shapecheck.dims.configs import ALGORITHMS, Pair, read_pair
from shapecheck.dims.model import Dims


@click.command()
@click.argument("target", type=click.Path())
@click.argument("draft", type=click.Path(), required=False)
@click.option(
    "--algorithm", required=True, type=click.Choice(ALGORITHMS), help="How the draft is used."
)
@click.option("--num-steps", type=int, help="Draft depth (3; 0 for none).")
@click.option("--topk", type=int, default=1, show_default=True, help="Branching of the tree.")
@click.option("--num-draft-tokens", type=int, help="Verify width, root included (num_steps+1).")
@click.option("--num-aux", type=int, help="Target layers an EAGLE-3 head reads (from its config).")
@click.option("--tp", type=int, default=1, show_default=True, help="Tensor-parallel ranks.")
@click.option("--draft-tp", type=int, help="Ranks that share the draft; 1 replicates it (tp).")
@click.option(
    "--output-format",
    type=click.Choice(["full", "json"]),
    default="full",
    show_default=True,
    help="Text for people, or one JSON document.",
)
@click.pass_context
def pair(
    ctx: click.Context,
    target: str,
    draft: str | None,
    algorithm: str,
    num_steps: int | None,
    topk: int,
    num_draft_tokens: int | None,
    num_aux: int | None,
    tp: int,
    draft_tp: int | None,
    output_format: str,
) -> None:
    """Check by their configs alone whether DRAFT can serve TARGET.

    TARGET and DRAFT are config.json files or folders that hold one. ngram and none take no
    DRAFT; mtp takes none when the target's checkpoint ships the MTP layers.
    """
    if num_steps is None:
        num_steps = 0 if algorithm == "none" else 3
    read = read_pair(
        target,
        draft,
        algorithm=algorithm,
        num_steps=num_steps,
        topk=topk,
        num_draft_tokens=num_draft_tokens,
        num_aux=num_aux,
        tp=tp,
        draft_tp=draft_tp,
    )
    findings, dims = read.findings(), read.dims()
    if output_format == "json":
        click.echo(render_json(findings, _summary(read, dims)), nl=False)
    else:
        click.echo("\n".join(_table(dims)))
        for finding in findings:
            click.echo(f"\n{finding.severity}: {render_full(finding)}")
        click.echo(f"\n{_verdict(read, findings)}")
    ctx.exit(FINDINGS if _errors(findings) else CLEAN)


def _errors(findings: Sequence[Diagnostic]) -> list[Diagnostic]:
    return [finding for finding in findings if finding.severity is Severity.ERROR]


def _verdict(read: Pair, findings: Sequence[Diagnostic]) -> str:
    errors = _errors(findings)
    names = dict.fromkeys(finding.dims.expected for finding in errors if finding.dims is not None)
    against = f" because of {', '.join(names)}" if names else ""
    pair_name = " + ".join(_files(read))
    if errors:
        return f"{pair_name} cannot work as {read.spec.algorithm}{against}"
    others = len(findings)
    hints = f" ({others} {'note' if others == 1 else 'notes'} above)" if others else ""
    return f"{pair_name} can work as {read.spec.algorithm}{hints}"


def _files(read: Pair) -> list[str]:
    models = (read.target, read.draft)
    return list(dict.fromkeys(model.label for model in models if model is not None))


def _table(dims: Dims) -> list[str]:
    rows = [("name", "value", "owner", "origin")]
    for name, size in dims.sizes.items():
        rows.append((name, "-" if size.value is None else str(size.value), size.owner, size.origin))
    rows.append(("target_dtype", dims.target_dtype, "target", ""))
    if dims.draft_dtype is not None:
        rows.append(("draft_dtype", dims.draft_dtype, "draft", ""))
    name_width, value_width, owner_width = (max(len(row[i]) for row in rows) for i in range(3))
    return [
        f"{name:<{name_width}}  {value:>{value_width}}  {owner:<{owner_width}}  {origin}".rstrip()
        for name, value, owner, origin in rows
    ]


def _summary(read: Pair, dims: Dims) -> dict[str, object]:
    return {
        "tier": "pair",
        "algorithm": read.spec.algorithm,
        "files": len(_files(read)),
        "dims": {
            name: {"value": size.value, "owner": str(size.owner), "origin": size.origin}
            for name, size in dims.sizes.items()
        },
        "target_dtype": dims.target_dtype,
        "draft_dtype": dims.draft_dtype,
    }
