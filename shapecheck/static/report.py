"""One lint run from targets to findings: fetch, read, analyse or recall, judge, count."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from shapecheck.diagnostics.model import Diagnostic, Severity
from shapecheck.errors import ShapecheckError
from shapecheck.static.analyse import analyse, weighing
from shapecheck.static.analysis import Analysis
from shapecheck.static.contracts.lookup import Promises
from shapecheck.static.entries import Entries, read_entries
from shapecheck.static.outcome import Outcome, judged
from shapecheck.static.packs.choose import choose_packs
from shapecheck.static.packs.model import Pack
from shapecheck.static.release import fetch, parse_release
from shapecheck.static.result_cache import ResultCache, brought_up, cache_key, texts_now
from shapecheck.static.suppressions import apply_suppressions
from shapecheck.static.update import updated
from shapecheck.static.workers import Progress

_MAX_PACKAGE_DEPTH = 12
_TOOL_FAULTS = ("SHP901", "SHP903")


@dataclass(frozen=True, slots=True, kw_only=True)
class RootReport:
    """What was found below one import root; paths of findings are relative to it."""

    root: Path
    findings: tuple[Diagnostic, ...]
    counts: Mapping[str, int]
    covered: frozenset[str]
    recalled: bool

    @property
    def lines(self) -> int:
        """The lines of the files of the targets."""
        return self.counts["lines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings of one run, root by root, and what it could resolve."""

    analyses: tuple[RootReport, ...]
    seconds: float

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """The findings of every root."""
        return tuple(finding for one in self.analyses for finding in one.findings)

    @property
    def exit_status(self) -> int:
        """0 clean, 1 findings; 2 after a crash, or when nothing could be read or resolved."""
        codes = {one.code for one in self.findings}
        if "SHP901" in codes:
            return 2
        errors = (one for one in self.findings if one.severity is Severity.ERROR)
        if any(one.code not in _TOOL_FAULTS for one in errors):
            return 1
        return 2 if "SHP903" in codes or not self.resolved else 0

    @property
    def resolved(self) -> bool:
        """Whether the run saw anything it could judge."""
        return any(one.counts["resolved"] for one in self.analyses)

    def summary(self) -> dict[str, object]:
        """The counts of the JSON document."""

        def total(name: str) -> int:
            return sum(one.counts[name] for one in self.analyses)

        return {
            "files": total("files"),
            "lines": total("lines"),
            "seconds": round(self.seconds, 3),
            "dim_reads": total("dim_reads"),
            "dim_reads_with_owner": total("dim_reads_with_owner"),
            "creations": total("creations"),
            "creations_with_owner": total("creations_with_owner"),
            "contracts": total("contracts"),
            "tier": "lint",
            "files_skipped": total("files_skipped"),
            "lines_loaded": total("lines_loaded"),
            "functions": total("functions"),
            "functions_cut_short": total("functions_cut_short"),
            "resolved": self.resolved,
            "recalled": bool(self.analyses) and all(one.recalled for one in self.analyses),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """How files are had: contents that stand in for those on disk, what is left out, the cache.

    `cache` gives the folder of kept outcomes for an import root, or None to keep none.
    """

    given: Mapping[Path, bytes] = field(default_factory=dict[Path, bytes])
    excluded: Callable[[Path], bool] = lambda _file: False
    cache: Callable[[Path], Path | None] = lambda _root: None
    progress: Progress | None = None


def run(
    targets: tuple[str, ...],
    *,
    select: frozenset[str] = frozenset(),
    ignore: frozenset[str] = frozenset(),
    packs: bool = True,
    pack_paths: tuple[str, ...] = (),
    inputs: Inputs | None = None,
) -> Report:
    """Lint every target; ShapecheckError when one cannot be had or a code is unknown.

    `packs` reads the shipped packs that describe a target; those at `pack_paths` are read besides.
    """
    # The registry imports this package's facts; it is needed only for judging.
    from shapecheck.rules.registry import check_codes

    check_codes(select | ignore)
    with _no_collection():
        return _run(targets, select, ignore, packs, pack_paths, inputs or Inputs())


@contextmanager
def _no_collection() -> Generator[None]:
    """Without the search for garbage: trees and facts live until the end of a run."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _run(
    targets: tuple[str, ...],
    select: frozenset[str],
    ignore: frozenset[str],
    packs: bool,
    pack_paths: tuple[str, ...],
    inputs: Inputs,
) -> Report:
    started = time.perf_counter()
    analyses: list[RootReport] = []
    groups = _grouped(targets, inputs.given)
    for root, paths in groups.items():
        excluded = _excluded_from(root, groups, inputs)
        entries = read_entries(root, paths, given=inputs.given, excluded=excluded)
        chosen = choose_packs(root, targets, given=pack_paths, shipped=packs)
        outcome, recalled = _outcome(entries, paths, inputs, chosen)
        shown = [one for one in outcome.findings if _is_shown(one, entries)]
        left = apply_suppressions(shown, list(entries.suppressions))
        analyses.append(
            RootReport(
                root=root,
                findings=tuple(
                    one
                    for one in left
                    if one.code == "SHP901"
                    or ((not select or one.code in select) and one.code not in ignore)
                ),
                counts=_counts(entries, outcome),
                covered=entries.covered,
                recalled=recalled,
            )
        )
    return Report(analyses=tuple(analyses), seconds=time.perf_counter() - started)


def _excluded_from(
    root: Path, groups: Mapping[Path, list[Path]], inputs: Inputs
) -> Callable[[Path], bool]:
    """What is left out, and what a target with a root further inside covers already."""
    inner = [
        path
        for other, paths in groups.items()
        if other != root and other.is_relative_to(root)
        for path in paths
    ]
    return lambda file: inputs.excluded(file) or any(file.is_relative_to(one) for one in inner)


def _outcome(
    entries: Entries, paths: list[Path], inputs: Inputs, packs: tuple[Pack, ...]
) -> tuple[Outcome, bool]:
    folder = inputs.cache(entries.root)
    if folder is None:
        return judged(entries, analyse(entries, inputs.progress, packs)), False
    state = [f"{pack.label} {pack.digest}" for pack in packs]
    cache, key = ResultCache(folder=folder), cache_key(entries.root, paths, state)
    weigh = weighing(Promises.of(packs))
    analysis: Analysis | None = None
    kept = cache.earlier(key)
    now = texts_now(kept.outcome, entries) if kept is not None else None
    if kept is not None and now is not None:
        edited = kept.texts.edited(now)
        outcome = brought_up(kept.outcome, now, edited, weigh)
        if outcome is not None:
            return outcome, True
        earlier = cache.analysis(key, kept)
        if earlier is not None:
            analysis = updated(
                earlier,
                now,
                edited,
                entries,
                weigh=weigh,
                packs=packs,
                progress=inputs.progress,
            )
    if analysis is None:
        analysis = analyse(entries, inputs.progress, packs, lasting=True)
    outcome = judged(entries, analysis)
    cache.put(key, outcome, analysis, kept)
    return outcome, False


def _is_shown(finding: Diagnostic, entries: Entries) -> bool:
    if finding.code in ("SHP104", "SHP901") or finding.primary is None:
        return True
    return finding.primary.path in entries.covered


def _counts(entries: Entries, outcome: Outcome) -> dict[str, int]:
    return {
        "files": len(entries.covered),
        "files_skipped": entries.skipped,
        "lines": entries.lines,
        **outcome.counts,
    }


def _grouped(targets: tuple[str, ...], given: Mapping[Path, bytes]) -> dict[Path, list[Path]]:
    groups: dict[Path, list[Path]] = {}
    for target in targets:
        root, path = _locate(target, given)
        paths = groups.setdefault(root, [])
        if path not in paths:
            paths.append(path)
    return groups


def _locate(target: str, given: Mapping[Path, bytes]) -> tuple[Path, Path]:
    if target.startswith("pypi:"):
        release = parse_release(target)
        root = fetch(release)
        path = root / release.subpath if release.subpath else root
        if not path.exists():
            raise ShapecheckError(
                f"{target}: the release has no {release.subpath}; "
                f"its top level holds {', '.join(_top_level(root))}"
            )
        return root, path
    path = Path(os.path.abspath(target))
    try:
        exists = bool(target) and (path in given or path.exists())
        is_source = path in given or path.is_file() or path.is_dir()
    except (OSError, ValueError):
        exists = is_source = False
    if not exists:
        raise ShapecheckError(f"{target or '(empty)'}: no such file or folder; check the path")
    if not is_source:
        raise ShapecheckError(f"{target}: neither a file nor a folder; read it with - from stdin")
    return import_root(path), path


def _top_level(root: Path) -> list[str]:
    return sorted(one.name for one in root.iterdir() if not one.name.startswith("."))[:8]


def import_root(path: Path) -> Path:
    """The folder that dotted module names start from: above the outermost package."""
    folder = path if path.is_dir() else path.parent
    root = folder
    for candidate in [folder, *folder.parents][:_MAX_PACKAGE_DEPTH]:
        if (candidate / "__init__.py").is_file():
            root = candidate.parent
    return root
