"""Dims from two HF configs: the reading behind `Dims.from_configs` and `shapecheck pair`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from shapecheck.diagnostics.model import Diagnostic, Severity
from shapecheck.dims.config_file import ConfigFile, Source, read_config
from shapecheck.dims.derive import derive
from shapecheck.dims.model import Dims
from shapecheck.dims.model_config import ModelConfig, model_config
from shapecheck.dims.pair import check_pair
from shapecheck.dims.speculation import ALGORITHMS, Algorithm, Speculation, fault, speculation
from shapecheck.errors import ShapecheckError

__all__ = ["ALGORITHMS", "Algorithm", "Pair", "read_dims", "read_pair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A target, the draft that is to serve it, and how; read, but not yet judged."""

    target: ModelConfig
    draft: ModelConfig | None
    spec: Speculation

    def dims(self) -> Dims:
        """The Dims of the pair, sizes it cannot have left None with the reason."""
        return derive(self.target, self.draft, self.spec)

    def findings(self) -> list[Diagnostic]:
        """What stands against the pair, gravest first."""
        return check_pair(self.target, self.draft, self.spec)


def read_pair(
    target: Source,
    draft: Source | None = None,
    *,
    algorithm: str,
    num_steps: int,
    topk: int = 1,
    num_draft_tokens: int | None = None,
    num_aux: int | None = None,
    tp: int = 1,
    draft_tp: int | None = None,
) -> Pair:
    """The pair as its configs describe it; raises ShapecheckError for an input that is at fault."""
    spec = speculation(
        algorithm=algorithm,
        num_steps=num_steps,
        topk=topk,
        num_draft_tokens=num_draft_tokens,
        num_aux=num_aux,
        tp=tp,
        draft_tp=draft_tp,
    )
    first = read_config(target, role="target")
    second = _draft_file(first, draft, spec)
    if second is not None:
        first, second = _told_apart(first, second)
    return Pair(
        target=model_config(first),
        draft=None if second is None else model_config(second),
        spec=spec,
    )


def read_dims(
    target: Source,
    draft: Source | None = None,
    *,
    algorithm: str,
    num_steps: int,
    topk: int = 1,
    num_draft_tokens: int | None = None,
    num_aux: int | None = None,
    tp: int = 1,
    draft_tp: int | None = None,
) -> Dims:
    """The Dims of a pair that can work; raises ShapecheckError with the first reason it cannot."""
    pair = read_pair(
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
    for finding in pair.findings():
        if finding.severity is Severity.ERROR:
            remedies = [note.message for note in finding.notes if note.label == "remedy"]
            text = "; ".join((f"{finding.code} {finding.message}", *remedies))
            raise ShapecheckError(text, diagnostic=finding)
    return pair.dims()


def _draft_file(target: ConfigFile, draft: Source | None, spec: Speculation) -> ConfigFile | None:
    if not spec.has_draft:
        if draft is not None:
            raise fault(
                f"algorithm {spec.algorithm} has no draft model: leave the draft config out, or "
                "choose standalone, eagle, eagle3 or mtp"
            )
        return None
    if draft is not None:
        return read_config(draft, role="draft")
    if spec.algorithm == "mtp":
        # MTP layers ship inside the target's checkpoint and are described by its config.
        return target
    raise fault(
        f"algorithm {spec.algorithm} needs a draft: give the config.json of the draft model"
    )


def _told_apart(target: ConfigFile, draft: ConfigFile) -> tuple[ConfigFile, ConfigFile]:
    """The two files under labels that differ, by as many parent folders as that takes."""
    if target.label != draft.label or target.path is None or draft.path is None:
        return target, draft
    ways = Path(target.path).absolute().parts, Path(draft.path).absolute().parts
    for depth in range(3, max(map(len, ways)) + 1):
        first, second = ("/".join(way[-depth:]) for way in ways)
        if first != second:
            return replace(target, label=first), replace(draft, label=second)
    return target, draft
