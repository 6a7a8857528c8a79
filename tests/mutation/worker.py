"""One worker: its own copy of the engine, one mutant after the other, each tier in a fork.

The worker has imported what every fork needs and has run the engine once, so that a fork pays for
the mutant alone; the engine itself each fork imports anew, from the worker's copy.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import shutil
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from tests.mutation import tiers
from tests.mutation.mutants import Mutant
from tests.mutation.table import is_broken

_FORK = multiprocessing.get_context("fork")
# Of the clock, for what waits; of the processor, so that a busy machine judges no mutant.
_LIMIT_S = 600.0
_LIMIT_CPU_S = 120
# Above what the warm worker has mapped: a mutant that never stops appending ends here.
_MEMORY_BYTES = 4 << 30
_ENGINE = Path(__file__).parents[2] / "engine"

Record = dict[str, object]


def copied(root: Path) -> Path:
    """A copy of the engine below `root`."""
    shutil.copytree(_ENGINE, root / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    return root


def warm(root: Path) -> None:
    """This process has done everything once."""
    torch.set_num_threads(1)
    tiers.warm(root)
    # A fork lives for seconds: what it leaves behind is not worth a collection.
    gc.collect()
    gc.freeze()
    gc.disable()


def forked(function: Callable[..., object], *args: object) -> object:
    """What the function returns in a fork; text that says so when it dies, takes too long, or asks
    for too much memory."""
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
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    _bound(_MEMORY_BYTES, _LIMIT_CPU_S)
    try:
        result = function(*args)
    except Exception as error:
        result = f"{type(error).__name__}: {str(error)[:160]}"
    out.send(result)
    out.close()
    os._exit(0)


def _bound(more: int, seconds: int) -> None:
    """This process maps at most so many bytes more than it has now, beyond is a MemoryError; after
    so many seconds of its processor it is ended."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + more, resource.RLIM_INFINITY))


def judge(mutant: Mutant, root: Path, base: Record, *, cases: int) -> Record:
    """The record of one mutant: what every tier said, and what it changed.

    Of the traced cases that run the changed lines the first `cases` are traced. No tier is asked
    of a mutant that Python itself stops.
    """
    spent = _spent()
    path = root / "engine" / mutant.path
    original, stat = path.read_text(), path.stat()
    path.write_text(mutant.source)
    try:
        unchecked = forked(tiers.unchecked, root, base["shapes"])
        ended = isinstance(unchecked, dict)
        off = _worst(unchecked["ends"] if ended else unchecked)
        said: Record = {"strict": off, "full": off, "lint": []}
        said |= {"trace": {"found": [], "stopped": off}}
        if not is_broken(off):
            said = _judged(root, _cases_for(mutant, base)[:cases])
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
        "changes": unchecked["changes"] if ended else True,
        "crosses": unchecked["crossed"] != base["crossed"] if ended else True,
        "off": off,
        **said,
        "cpu_seconds": round(_spent() - spent, 1),
    }


def _judged(root: Path, cases: list[str]) -> Record:
    full = _worst(forked(tiers.load, root, "full"))
    # `full` checks all that `strict` does and values besides: what passes it passes `strict`.
    seen = full.startswith("SHP")
    return {
        "full": full,
        "strict": _worst(forked(tiers.load, root, "strict")) if seen else full,
        "trace": forked(tiers.trace, root, cases),
        "lint": forked(tiers.lint, root),
    }


def baseline(root: Path) -> Record:
    """The unmutated engine: its shapes, the lines of each traced case, and no finding at all."""
    off = forked(tiers.unchecked, root, {})
    assert isinstance(off, dict), off
    return {
        "off": off["ends"],
        "shapes": off["shapes"],
        "crossed": off["crossed"],
        "strict": forked(tiers.load, root, "strict"),
        "full": forked(tiers.load, root, "full"),
        "lint": forked(tiers.lint, root),
        "covered": forked(tiers.covered, root),
        "trace": forked(tiers.trace, root),
    }


def _cases_for(mutant: Mutant, base: Record) -> list[str]:
    """The traced cases that run a line of the mutated statement; the others cannot differ."""
    covered = base["covered"]
    assert isinstance(covered, dict), "the baseline was measured"
    first, last = mutant.lines
    return [
        name
        for name, lines in covered.items()
        if any(first <= line <= last for line in lines.get(mutant.path, ()))
    ]


def _worst(outcome: object) -> str:
    """One word for a load run: a contract's error if any engine got one, else another error."""
    if not isinstance(outcome, dict):
        return str(outcome)
    said = [one for one in outcome.values() if one != "done"]
    return next((one for one in said if one.startswith("SHP")), said[0] if said else "done")


def _spent() -> float:
    """CPU seconds of the forks so far."""
    times = os.times()
    return times.children_user + times.children_system
