"""Which tier sees a mutant of the engine: `python -m tests.mutation [--json] [--minutes N]`.

Mutants are run in a fixed order whose every prefix is a fair sample; what was run before is kept
in the state file, one JSON line a mutant, and a second call goes on from there. A state file is of
one engine: after a change of the engine take another.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants, sample
from tests.mutation.table import document, text
from tests.mutation.worker import Record, baseline, copied, judge, warm

_HERE = Path(__file__).parent
_ENGINE = Path(__file__).parents[2] / "engine"


def main() -> int:
    """Exit 0 when the engine itself is clean in every tier, 1 when it is not."""
    options = _options()
    every = mutants(_ENGINE)
    todo = sample(every, options.sample)[options.skip : options.limit]
    known = _read(options.state)
    base = known.pop("base", None)
    with tempfile.TemporaryDirectory() as folder:
        root = copied(Path(folder))
        warm(root)  # here, before the workers fork
        if base is None:
            base = {"key": "base", "engine": _digest(), **baseline(root)}
            _append(options.state, base)
    if base["engine"] != _digest():
        print(f"{options.state} is of another engine; choose another --state", file=sys.stderr)
        return 2
    deadline = time.monotonic() + 60 * options.minutes
    left = [one for one in todo if one.key not in known]
    workers = [
        multiprocessing.Process(
            target=_work, args=(left[number :: options.jobs], base, options, deadline)
        )
        for number in range(options.jobs)
    ]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    known = _read(options.state)
    records = [known[one.key] for one in todo if one.key in known]
    found = document(records, base, generated=len(every), of=options.sample)
    print(json.dumps(found, indent=1) if options.json else text(found))
    return 0 if found["clean"] else 1


def _work(todo: list[Mutant], base: Record, options: argparse.Namespace, deadline: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = copied(Path(folder))
        for mutant in todo:
            if time.monotonic() > deadline:
                return
            _append(options.state, judge(mutant, root, base, cases=options.cases))


def _append(state: Path, record: Record) -> None:
    # One write: lines of two workers do not mix.
    with state.open("a") as file:
        file.write(json.dumps(record) + "\n")


def _read(state: Path) -> dict[str, Record]:
    if not state.exists():
        return {}
    records = [json.loads(line) for line in state.read_text().splitlines()]
    return {record["key"]: record for record in records}


def _digest() -> str:
    """Another digest is another engine."""
    digest = hashlib.sha256()
    for path in sorted(_ENGINE.rglob("*.py")):
        digest.update(f"{path.relative_to(_ENGINE)}\n{path.read_text()}".encode())
    return digest.hexdigest()[:12]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--json", action="store_true", help="the whole document, not the table")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument(
        "--sample",
        choices=["pilot", "final", "all"],
        default="final",
        help="pilot: the tenth that may be looked at; final: the others (final)",
    )
    parser.add_argument("--limit", type=int, default=None, help="only so many mutants, in order")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first, in order (0)")
    parser.add_argument("--cases", type=int, default=4, help="traced engines a mutant, at most (4)")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop starting mutants then")
    parser.add_argument(
        "--state", type=Path, default=_HERE / "state.jsonl", help="what was run (state.jsonl)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
