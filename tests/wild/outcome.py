"""What lint says about one case: which findings count, and what is left on the fixed release."""

from __future__ import annotations

from dataclasses import dataclass

from shapecheck.diagnostics.model import Diagnostic
from tests.wild.cases import Case
from tests.wild.linting import lint
from tests.wild.matching import counting, remaining


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One case at one setting."""

    case: Case
    packs: bool
    counted: tuple[Diagnostic, ...]
    left: tuple[Diagnostic, ...]
    buggy_findings: int
    fixed_findings: int
    fixed_lines: int
    seconds: float

    @property
    def found(self) -> bool:
        """Whether a finding on the buggy release counts."""
        return bool(self.counted)

    @property
    def clean(self) -> bool:
        """Whether the fixed release is free of it."""
        return not self.left

    @property
    def hit(self) -> bool:
        """Both: only this is a success."""
        return self.found and self.clean

    def lines(self) -> list[str]:
        """The outcome for a reader: the verdict, then the findings that decided it."""
        found, clean = "FOUND" if self.found else "missed", "CLEAN" if self.clean else "STILL THERE"
        setting = "with packs" if self.packs else "without packs"
        first = (
            f"  {setting:13} {found:6} {clean}  ({self.buggy_findings} findings on the buggy, "
            f"{self.fixed_findings} on the fixed release, {self.seconds:.1f} s)"
        )
        counts = [f"    counts  {described(one)}" for one in self.counted]
        return [first, *counts, *(f"    left    {described(one)}" for one in self.left)]

    def as_dict(self) -> dict[str, object]:
        """The outcome as plain data."""
        return {
            "case": self.case.id,
            "packs": self.packs,
            "found": self.found,
            "clean": self.clean,
            "counted": [described(one) for one in self.counted],
            "left": [described(one) for one in self.left],
            "buggy_findings": self.buggy_findings,
            "fixed_findings": self.fixed_findings,
            "fixed_lines": self.fixed_lines,
            "seconds": round(self.seconds, 1),
        }


def described(finding: Diagnostic) -> str:
    """Place, code, cell and the two names of a finding."""
    dims = finding.dims
    names = f" found {dims.found}, expected {dims.expected}" if dims else ""
    return f"{finding.primary} {finding.code} ({finding.certainty}) {finding.cell}{names}"


def judge(case: Case, *, packs: bool, whole: bool = False) -> Outcome:
    """Lint both releases of a case; ShapecheckError when one cannot be had."""
    buggy = lint(case.buggy.targets(whole=whole), packs=packs)
    fixed = lint(case.fixed.targets(whole=whole), packs=packs)
    counted = counting(case, case.buggy, buggy.findings)
    return Outcome(
        case=case,
        packs=packs,
        counted=tuple(counted),
        left=tuple(remaining(case, counted, fixed.findings)),
        buggy_findings=len(buggy.findings),
        fixed_findings=len(fixed.findings),
        fixed_lines=sum(one.lines for one in fixed.analyses),
        seconds=buggy.seconds + fixed.seconds,
    )
