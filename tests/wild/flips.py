"""Owner flips: `python -m tests.wild.flips [--packs | --no-packs] [--list] [--write] [--json]`.

Takes the fixed sglang release, flips the owner of one size read at a time (`mutate.py`), lints each
mutant and counts those that are seen. A mutant is seen when lint reports, with two names, something
that it does not report on the unchanged release, and that points at the statement with the flipped
read: its primary place or a note lies there. Other new findings count as `elsewhere`, not as seen.

Results are kept in the cache folder for each state of the linter, so a second run is quick.
`mutants.json` holds the list; `--list` compares it with what the rules give, `--write` renews it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import shapecheck
from shapecheck.diagnostics.json import fingerprint
from shapecheck.diagnostics.model import Diagnostic
from shapecheck.errors import ShapecheckError
from shapecheck.static.release import cache_folder, fetch, parse_release
from tests.wild.linting import lint
from tests.wild.mutate import Mutant, mutants
from tests.wild.outcome import described

RELEASE = "sglang==0.5.12"
SUBPATH = "sglang/srt/speculative"
LISTED = Path(__file__).with_name("mutants.json")


def main() -> int:
    """Lint the release and every mutant of it; 0 unless the release cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m tests.wild.flips", description=__doc__)
    parser.add_argument("--packs", action=argparse.BooleanOptionalAction)
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    parser.add_argument("--write", action="store_true", help="write mutants.json and stop")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args()
    try:
        root = fetch(parse_release(f"pypi:{RELEASE}"))
    except ShapecheckError as error:
        print(error, file=sys.stderr)
        return 2
    made = list(generate(root))
    if options.write:
        text = json.dumps([asdict(one) for one in made], indent=2)
        LISTED.write_text(text + "\n", encoding="utf-8")
        return 0
    if options.list:
        print("\n".join(f"{one.name} {one.rule} {one.before} -> {one.after}" for one in made))
        return 0 if made == listed() else 1
    settings = [False, True] if options.packs is None else [options.packs]
    results = [_measure(root, made, packs) for packs in settings]
    if options.json:
        print(json.dumps({"release": RELEASE, "results": results}, indent=2))
    return 0


def generate(root: Path) -> Iterator[Mutant]:
    """The mutants of the speculative folder, in the order of the source."""
    for file in sorted((root / SUBPATH).rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        yield from mutants(file.relative_to(root).as_posix(), text)


def listed() -> list[Mutant]:
    """The mutants of the committed list."""
    return [Mutant(**one) for one in json.loads(LISTED.read_text(encoding="utf-8"))]


def _measure(root: Path, made: list[Mutant], packs: bool) -> dict[str, object]:
    kept = Kept(packs)
    missing = [one for one in made if one.name not in kept.verdicts]
    if missing:
        with tempfile.TemporaryDirectory(prefix="shapecheck-flips-") as folder:
            copy = Path(folder, "tree")
            shutil.copytree(root, copy)
            before = {fingerprint(one) for one in _findings(copy, packs)}
            for mutant in missing:
                kept.add(mutant, verdict(copy, mutant, before, packs))
    setting = "with packs" if packs else "without packs"
    for mutant in made:
        status, shown = kept.verdicts[mutant.name]
        print(f"{setting:13} {status:9} {mutant.name} {mutant.before} -> {mutant.after}")
        print("".join(f"    {line}\n" for line in shown), end="", flush=True)
    seen = sum(kept.verdicts[one.name][0] == "seen" for one in made)
    print(f"{setting}: {seen} of {len(made)} flips seen ({100 * seen / len(made):.0f} %)")
    return {
        "packs": packs,
        "mutants": len(made),
        "seen": seen,
        "verdicts": {one.name: kept.verdicts[one.name][0] for one in made},
    }


Verdict = tuple[str, list[str]]


def verdict(tree: Path, mutant: Mutant, before: set[str], packs: bool) -> Verdict:
    """`seen`, `elsewhere` or `missed`, and the new findings; the tree is restored."""
    file = tree / mutant.path
    text = file.read_text(encoding="utf-8")
    try:
        file.write_text(mutant.applied(text), encoding="utf-8")
        found = [one for one in _findings(tree, packs) if fingerprint(one) not in before]
    finally:
        file.write_text(text, encoding="utf-8")
    new = [one for one in found if one.dims is not None]
    seen = [one for one in new if points_at(one, mutant)]
    status = "seen" if seen else "elsewhere" if new else "missed"
    return status, [described(one) for one in seen or new]


def points_at(finding: Diagnostic, mutant: Mutant) -> bool:
    """Whether the primary place or a note of the finding lies in the flipped statement."""
    spans = [finding.primary, *(note.span for note in finding.notes)]
    return any(
        span is not None and span.path == mutant.path and mutant.first <= span.line <= mutant.last
        for span in spans
    )


def _findings(tree: Path, packs: bool) -> Iterable[Diagnostic]:
    lint.cache_clear()  # the same path holds another source
    return lint((str(tree / SUBPATH),), packs=packs).findings


class Kept:
    """The verdicts of earlier runs with the same linter and release."""

    def __init__(self, packs: bool) -> None:
        name = f"{RELEASE}-{'packs' if packs else 'plain'}-{linter_state()}.json"
        self.file = cache_folder() / "flips" / name
        self.verdicts: dict[str, Verdict] = {}
        if self.file.is_file():
            self.verdicts = json.loads(self.file.read_text(encoding="utf-8"))

    def add(self, mutant: Mutant, result: Verdict) -> None:
        """Remember one verdict on disk."""
        self.verdicts[mutant.name] = result
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self.verdicts, indent=1), encoding="utf-8")


def linter_state() -> str:
    """A digest of the linter's own source and packs, and of the rules of flipping."""
    package = Path(shapecheck.__file__).parent
    files = [*package.rglob("*.py"), *package.rglob("*.pyi"), *package.rglob("*.toml")]
    files += [Path(__file__), Path(__file__).with_name("mutate.py")]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(main())
