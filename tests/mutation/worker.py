"""One worker: its own copy of the engine, one mutant after the other, each tier in a fork."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from tests.mutation import tiers
from tests.mutation.mutants import Mutant

# Imported once, so that no fork pays for them; nothing here imports the engine.
import shapecheck.static.report  # isort: skip
import shapecheck.symbolic  # noqa: F401  # isort: skip

_FORK = multiprocessing.get_context("fork")
_LIMIT_S = 150.0
# A third traced case rarely shows what two do not, and a trace is the dearest of the tiers.
_CASES = 2
_ENGINE = Path(__file__).parents[2] / "engine"

Record = dict[str, object]


def copy_engine(root: Path) -> Path:
    """A copy of the engine below `root`, without what tests do not read."""
    shutil.copytree(_ENGINE, root / "engine")
    return root


def forked(function: Callable[..., object], *args: object) -> object:
    """What the function returns in a fork; text that says so when it dies or takes too long."""
    mine, theirs = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_child, args=(theirs, function, args))
    process.start()
    theirs.close()
    try:
        return mine.recv() if mine.poll(_LIMIT_S) else "timeout"
    except EOFError:
        return "died"
    finally:
        process.kill()
        process.join()


def _child(out: Connection, function: Callable[..., object], args: tuple[object, ...]) -> None:
    torch.set_num_threads(1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        result = function(*args)
    except Exception as error:
        result = f"{type(error).__name__}: {str(error)[:160]}"
    out.send(result)
    out.close()
    os._exit(0)


def judge(mutant: Mutant, root: Path, base: Record) -> Record:
    """The record of one mutant: what every tier said, and what it changed."""
    started = time.monotonic()
    path = root / "engine" / mutant.path
    original, stat = path.read_text(), path.stat()
    path.write_text(mutant.source)
    try:
        off = forked(tiers.unchecked, root, base["signature"])
        strict = forked(tiers.run, root, "strict")
        seen = _seen_at_run_time(strict)
        full = strict if seen else forked(tiers.run, root, "full")
        traced = forked(tiers.trace, root, _cases_for(mutant, base))
        lint = forked(tiers.lint, root)
    finally:
        path.write_text(original)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return {
        "key": mutant.key,
        "rule": mutant.rule,
        "place": f"engine/{mutant.path}:{mutant.line}",
        "before": mutant.before,
        "after": mutant.after,
        # What does not even import changes something.
        "changes": off["changes"] if isinstance(off, dict) else True,
        "off": _worst(off["ends"] if isinstance(off, dict) else off),
        "strict": _worst(strict),
        "full": _worst(full),
        "trace": traced,
        "lint": lint,
        "seconds": round(time.monotonic() - started, 1),
    }


def baseline(root: Path) -> Record:
    """The unmutated engine: its shapes, the lines of each traced case, and no finding at all."""
    names = forked(tiers.cases_names, root)
    assert isinstance(names, list), names
    record: Record = {
        "signature": forked(tiers.signature, root),
        "covered": {name: forked(tiers.covered, root, name) for name in names},
        "lint": forked(tiers.lint, root),
        "trace": forked(tiers.trace, root, names),
    }
    for level in ("off", "strict", "full"):
        record[level] = forked(tiers.run, root, level)
    return record


def _cases_for(mutant: Mutant, base: Record) -> list[str]:
    """The first traced cases that run a line of the mutated statement; the others cannot differ."""
    covered = base["covered"]
    assert isinstance(covered, dict), "the baseline was measured"
    first, last = mutant.lines
    running = [
        name
        for name, lines in covered.items()
        if any(first <= line <= last for line in lines.get(mutant.path, ()))
    ]
    return running[:_CASES]


def _seen_at_run_time(outcome: object) -> bool:
    return isinstance(outcome, dict) and any(said.startswith("SHP") for said in outcome.values())


def _worst(outcome: object) -> str:
    """One word for a load run: a contract's code if any engine got one, else another error."""
    if not isinstance(outcome, dict):
        return str(outcome)
    said = [one for one in outcome.values() if one != "done"]
    return next((one for one in said if one.startswith("SHP")), said[0] if said else "done")
