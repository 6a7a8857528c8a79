"""One lint run from targets to findings: fetch, analyse, judge, count."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from shapecheck.diagnostics.model import Diagnostic, Severity
from shapecheck.errors import ShapecheckError
from shapecheck.static.analyse import Analysis, analyse
from shapecheck.static.packs.choose import choose_packs
from shapecheck.static.release import fetch, parse_release
from shapecheck.static.suppressions import apply_suppressions

_MAX_PACKAGE_DEPTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings of one run and what it could resolve."""

    findings: tuple[Diagnostic, ...]
    analyses: tuple[Analysis, ...]
    seconds: float

    @property
    def exit_status(self) -> int:
        """0 clean, 1 findings, 2 when files could not be read or nothing was resolved."""
        if any(one.code != "SHP903" and one.severity is Severity.ERROR for one in self.findings):
            return 1
        unreadable = any(one.code == "SHP903" for one in self.findings)
        return 2 if unreadable or not self.resolved else 0

    @property
    def resolved(self) -> bool:
        """Whether the run saw anything it could judge."""
        return any(
            one.facts.dim_reads
            or one.facts.creations
            or one.facts.guarded_copies
            or one.facts.unused_indices
            for one in self.analyses
        )

    def summary(self) -> dict[str, object]:
        """The counts of the JSON document."""
        facts = [one.facts for one in self.analyses]
        return {
            "files": sum(one.files for one in self.analyses),
            "lines": sum(one.lines for one in self.analyses),
            "seconds": round(self.seconds, 3),
            "dim_reads": sum(len(one.dim_reads) for one in facts),
            "dim_reads_with_owner": sum(sum(map(bool, one.dim_reads.values())) for one in facts),
            "creations": sum(len(one.creations) for one in facts),
            "creations_with_owner": sum(sum(one.creations.values()) for one in facts),
            "contracts": sum(one.contracts for one in self.analyses),
            "tier": "lint",
            "files_skipped": sum(one.skipped for one in self.analyses),
            "lines_loaded": sum(one.loaded_lines for one in self.analyses),
            "functions": sum(one.functions for one in facts),
            "functions_cut_short": sum(one.cut_short for one in facts),
            "resolved": self.resolved,
        }

    def summary_lines(self, *, verbose: bool) -> list[str]:
        """The summary as text for stderr."""
        counts = self.summary()
        number = len(self.findings)
        lines = [
            f"{number} finding{'' if number == 1 else 's'} in {counts['files']} files "
            f"({counts['lines']} lines, {self.seconds:.1f} s)"
        ]
        if not self.resolved:
            lines.append(
                "nothing was resolved: no size read from a model's config and no tensor creation "
                "in these files; point TARGET at the engine's workers and graph runners"
            )
        if verbose:
            lines += [f"  {name.replace('_', ' ')}: {value}" for name, value in counts.items()]
        return lines


def run(
    targets: tuple[str, ...],
    *,
    select: frozenset[str] = frozenset(),
    ignore: frozenset[str] = frozenset(),
    packs: bool = True,
    pack_paths: tuple[str, ...] = (),
) -> Report:
    """Lint every target; ShapecheckError when one cannot be had or a code is unknown.

    `packs` reads the shipped packs that describe a target, `pack_paths` are read besides.
    """
    # The registry imports this package's facts; it is needed only for judging.
    from shapecheck.rules.registry import check_codes, judge

    check_codes(select | ignore)
    started = time.perf_counter()
    analyses: list[Analysis] = []
    findings: list[Diagnostic] = []
    for root, paths in _grouped(targets).items():
        chosen = choose_packs(root, targets, given=pack_paths, shipped=packs)
        analysis = analyse(root, paths, chosen)
        analyses.append(analysis)
        judged = [*judge(analysis.facts), *analysis.unreadable]
        shown = [one for one in judged if one.primary is None or analysis.covers(one.primary.path)]
        findings += apply_suppressions(shown, list(analysis.suppressions))
        findings += analysis.drift
    kept = [
        one for one in findings if (not select or one.code in select) and one.code not in ignore
    ]
    return Report(
        findings=tuple(kept), analyses=tuple(analyses), seconds=time.perf_counter() - started
    )


def _grouped(targets: tuple[str, ...]) -> dict[Path, list[Path]]:
    groups: dict[Path, list[Path]] = {}
    for target in targets:
        root, path = _locate(target)
        paths = groups.setdefault(root, [])
        if path not in paths:
            paths.append(path)
    return groups


def _locate(target: str) -> tuple[Path, Path]:
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
    path = Path(target)
    try:
        path = path.absolute()
        exists = path.exists()
    except (OSError, ValueError):
        exists = False
    if not exists:
        raise ShapecheckError(f"{target}: no such file or folder; check the path")
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
