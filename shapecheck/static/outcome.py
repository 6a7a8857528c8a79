"""What one import root came to: its findings, its counts, and the files that both rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.static.analysis import Analysis
from shapecheck.static.entries import Entries
from shapecheck.static.facts import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The judgement of one analysis, before anything is filtered: plain data that can be kept.

    `entries` are the states of the files it started from, `loaded` the texts of all that took
    part, both by path, packed in one that was kept; `absent` are the paths where a module was
    looked for and none was.
    """

    findings: tuple[Diagnostic, ...]
    counts: Mapping[str, int]
    entries: Mapping[str, str]
    loaded: Mapping[str, str]
    absent: frozenset[str]

    @property
    def lasting(self) -> bool:
        """Whether equal files lead to the same again: no crash, no file whose text is unknown."""
        known = self.entries.keys() | self.loaded.keys()
        return all(
            one.code != "SHP901" and (one.primary is None or one.primary.path in known)
            for one in self.findings
            if one.code.startswith("SHP9")
        )


def judged(entries: Entries, analysis: Analysis) -> Outcome:
    """The outcome of an analysis: what the rules say about every file that was loaded."""
    # The registry imports this package's facts; it is needed only for judging.
    from shapecheck.rules.registry import judge

    facts = analysis.units.facts()
    return Outcome(
        findings=(
            *judge(facts),
            *analysis.drift,
            *analysis.unreadable.values(),
            *analysis.crashes.values(),
        ),
        counts=_counts(facts)
        | {"lines_loaded": sum(analysis.lines.values()), "contracts": len(analysis.contracts)},
        entries=entries.states,
        loaded=analysis.loaded,
        absent=analysis.absent,
    )


def _counts(facts: Facts) -> dict[str, int]:
    reads, creations = facts.dim_reads.values(), facts.creations.values()
    judged = facts.guarded_copies or facts.unused_indices or facts.shape_texts
    resolved = reads or creations or judged
    return {
        "dim_reads": len(reads),
        "dim_reads_with_owner": sum(map(bool, reads)),
        "creations": len(creations),
        "creations_with_owner": sum(creations),
        "functions": len(facts.functions),
        "functions_cut_short": len(facts.cut_short),
        "resolved": int(bool(resolved)),
    }
