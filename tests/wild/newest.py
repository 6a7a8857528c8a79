"""The newest releases: `python -m tests.wild.newest [--engine NAME] [--no-packs] [--json]`.

Lints the newest release of each engine at default settings, and sets every finding against
`judged.json`, where a person wrote down whether it is `true`, `false` or `needs a run`, and why.
Prints the findings per 5,000 linted lines. Exit status: 0 when every finding is judged, 1 when one
is not, 2 when a release could not be had.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shapecheck.diagnostics.json import fingerprint
from shapecheck.errors import ShapecheckError
from tests.wild.cases import Strict
from tests.wild.linting import lint
from tests.wild.outcome import described

# The last release of each engine that has a wheel, and the part of it that can hold two models.
NEWEST = {
    "sglang": ("sglang==0.5.23", ("sglang/srt",)),
    "vllm": ("vllm==0.33.0", ("vllm",)),
    "vllm-ascend": ("vllm-ascend==0.23.0", ("vllm_ascend",)),
    "transformers": ("transformers==5.24.0", ("transformers",)),
}
JUDGED = Path(__file__).with_name("judged.json")
PER_LINES = 5_000


class Judgement(Strict):
    """What a person says about one finding, after reading the code it points at."""

    release: str
    finding: str
    verdict: Literal["true", "false", "needs a run"]
    reason: str


class Judgements(Strict):
    """The whole file: fingerprint to judgement."""

    judged: dict[str, Judgement]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The findings on one engine's newest release, each with its judgement if it has one."""

    release: str
    lines: int
    seconds: float
    findings: tuple[tuple[str, str, Judgement | None], ...]

    @property
    def rate(self) -> float:
        """Findings per 5,000 linted lines."""
        return len(self.findings) * PER_LINES / self.lines

    def verdicts(self) -> Counter[str]:
        """How many findings have which verdict."""
        return Counter(one.verdict if one else "not judged" for _, _, one in self.findings)


def examine(engine: str, *, packs: bool) -> Engine:
    """Lint the newest release of an engine; ShapecheckError when it cannot be had."""
    release, parts = NEWEST[engine]
    known = judgements()
    report = lint(tuple(f"pypi:{release}:{part}" for part in parts), packs=packs)
    return Engine(
        release=release,
        lines=sum(one.lines for one in report.analyses),
        seconds=report.seconds,
        findings=tuple(
            (fingerprint(one), described(one), known.get(fingerprint(one)))
            for one in report.findings
        ),
    )


def judgements() -> dict[str, Judgement]:
    """The judged findings by fingerprint."""
    return Judgements.model_validate_json(JUDGED.read_bytes()).judged


def main() -> int:
    """Examine the chosen engines and print them."""
    parser = argparse.ArgumentParser(prog="python -m tests.wild.newest", description=__doc__)
    parser.add_argument("--engine", action="append", choices=sorted(NEWEST))
    parser.add_argument("--packs", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args()
    engines: list[Engine] = []
    failures: list[str] = []
    for name in options.engine or NEWEST:
        try:
            engines.append(examine(name, packs=options.packs))
        except ShapecheckError as error:
            failures.append(f"{name}: {error}")
            continue
        if not options.json:
            print("\n".join(_lines(engines[-1])), flush=True)
    if options.json:
        print(json.dumps([_as_dict(one) for one in engines], indent=2))
    print("\n".join(failures), end="", file=sys.stderr)
    if failures:
        return 2
    return 1 if any(one.verdicts()["not judged"] for one in engines) else 0


def _lines(engine: Engine) -> list[str]:
    shown = [
        f"  {mark} {text}\n      {one.verdict}: {one.reason}" if one else f"  {mark} {text}"
        for mark, text, one in engine.findings
    ]
    counts = ", ".join(f"{number} {verdict}" for verdict, number in engine.verdicts().items())
    total = f"{len(engine.findings)} findings in {engine.lines} lines"
    return [
        f"{engine.release}: {total}, {engine.rate:.2f} per {PER_LINES} "
        f"({counts or 'none'}; {engine.seconds:.1f} s)",
        *shown,
    ]


def _as_dict(engine: Engine) -> dict[str, object]:
    return {
        "release": engine.release,
        "lines": engine.lines,
        "per_5000_lines": round(engine.rate, 3),
        "verdicts": dict(engine.verdicts()),
        "findings": [
            {"fingerprint": mark, "finding": text, "verdict": one.verdict if one else None}
            for mark, text, one in engine.findings
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
