"""Real releases: `python -m tests.wild [--case ID] [--packs | --no-packs] [--whole] [--json]`.

Fetches the releases of `cases.json`, lints the buggy and the fixed one, and says for each case
whether lint found the bug and whether the fix is clean; the rule is in `matching.py`. Exit status:
0 when every case was decided, 2 when a release could not be had.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from shapecheck.errors import ShapecheckError
from tests.wild.cases import Case, load_cases
from tests.wild.outcome import Outcome, judge


def main() -> int:
    """Decide the chosen cases and print them as they are decided."""
    options = _options()
    settings = [False, True] if options.packs is None else [options.packs]
    outcomes: list[Outcome] = []
    failures: list[str] = []
    for case in _chosen(options.case):
        try:
            decided = [judge(case, packs=packs, whole=options.whole) for packs in settings]
        except ShapecheckError as error:
            failures.append(f"{case.id}: {error}")
            continue
        outcomes += decided
        if not options.json:
            print("\n".join(_lines(case, decided)), flush=True)
    if options.json:
        data = [one.as_dict() for one in outcomes]
        print(json.dumps({"outcomes": data, "failures": failures, **_totals(outcomes)}, indent=2))
    else:
        for setting, total in _totals(outcomes).items():
            print(f"{setting}: {total}")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 2 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.wild", description=__doc__)
    parser.add_argument("--case", action="append", metavar="ID", help="only this case; repeatable")
    parser.add_argument(
        "--packs", action=argparse.BooleanOptionalAction, help="only with, or only without packs"
    )
    parser.add_argument("--whole", action="store_true", help="lint the whole package")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    return parser.parse_args()


def _chosen(wanted: list[str] | None) -> tuple[Case, ...]:
    cases = load_cases()
    known = {case.id for case in cases}
    unknown = sorted(set(wanted or ()) - known)
    if unknown:
        sys.exit(f"no such case: {', '.join(unknown)}; cases.json has {', '.join(sorted(known))}")
    return tuple(case for case in cases if wanted is None or case.id in wanted)


def _lines(case: Case, decided: list[Outcome]) -> Iterator[str]:
    yield f"{case.id}  {case.buggy.release} -> {case.fixed.release}"
    for outcome in decided:
        yield from outcome.lines()
    if case.needs and not any(outcome.hit for outcome in decided):
        yield f"    needs   {case.needs}"


def _totals(outcomes: list[Outcome]) -> dict[str, str]:
    totals: dict[str, str] = {}
    for packs in sorted({one.packs for one in outcomes}):
        mine = [one for one in outcomes if one.packs is packs]
        hits = sum(one.hit for one in mine)
        found = sum(one.found for one in mine)
        name = "with packs" if packs else "without packs"
        trees = {one.case.fixed.targets(whole=False): one for one in mine}.values()
        findings = sum(one.fixed_findings for one in trees)
        lines = sum(one.fixed_lines for one in trees)
        totals[name] = (
            f"{hits} of {len(mine)} FOUND and CLEAN ({found} FOUND); "
            f"fixed releases: {findings} findings in {lines} lines"
        )
    return totals


if __name__ == "__main__":
    sys.exit(main())
