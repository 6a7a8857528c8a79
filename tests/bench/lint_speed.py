"""How long lint takes next to a type checker: `python -m tests.bench.lint_speed [--json]`.

Copies one release, and runs `shapecheck lint` and `pyrefly check` in turn on the same folders of
it: cold (an empty cache), and warm (after one line of code of the longest method of one file was
changed). The figure is the least wall time over the rounds; processor time comes from the same
process (`wait4`, its finished children included), memory is the peak of it and its children
together, each page counted once. pyrefly keeps no cache between runs, so its warm run is another
cold one. It is found by `--pyrefly`, `$PYREFLY` or the path; install it into an environment of its
own.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from shapecheck.errors import ShapecheckError
from shapecheck.static.release import fetch, parse_release
from tests.bench.report import report, write

FOLDERS = {"speculative": "sglang/srt/speculative", "srt": "sglang/srt"}
EDITED = "sglang/srt/speculative/eagle_worker_v2.py"
# Most that lint may take, as a multiple of pyrefly's wall time in the same state.
COLD = {"speculative": 2.0, "srt": 1.0}
WARM_SECONDS = {"speculative": 1.5, "srt": 5.0}
MEMORY_MB = 800
HELP_SECONDS = 0.2
_LIMIT_SECONDS = 900
_LOOKS = 50  # between two looks at the memory of all processes, 0.1 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One command: wall and processor seconds, peak memory in MB, exit status."""

    wall: float
    processor: float
    memory: float
    status: int


def main() -> int:
    """Measure and print; 1 when a limit is missed, 2 when something could not be run."""
    options = _options()
    pyrefly = options.pyrefly or os.environ.get("PYREFLY") or shutil.which("pyrefly")
    if pyrefly is None:
        print("pyrefly is not there: pass --pyrefly PATH or set PYREFLY", file=sys.stderr)
        return 2
    try:
        root = fetch(parse_release(f"pypi:{options.release}"))
    except ShapecheckError as error:
        print(error, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="shapecheck-speed-") as folder:
        tree = Path(folder, "tree")
        # Without the mark of the fetcher, as a checkout would be.
        shutil.copytree(root, tree, ignore=shutil.ignore_patterns(".complete"))
        # Its own default configuration, whatever lies above the temporary folder.
        (tree / "pyrefly.toml").touch()
        chosen = options.folder or list(FOLDERS)
        if not _checks(pyrefly, tree / FOLDERS[chosen[0]]):
            print(f"{pyrefly} check reads no file of {FOLDERS[chosen[0]]}", file=sys.stderr)
            return 2
        results = _measure(root, tree, Path(folder, "cache"), pyrefly, chosen, options.rounds)
    if options.json:
        folders = "".join(f" --folder {name}" for name in chosen)
        command = (
            f"python -m tests.bench.lint_speed --release {options.release}{folders} "
            f"--rounds {options.rounds} --json"
        )
        write(report("lint_speed", results, command=command))
    else:
        for name, value in results.items():
            print(f"{name}: {value}")
    return 0 if results["reached"] else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.lint_speed", description=__doc__)
    parser.add_argument("--json", action="store_true", help="write the report as JSON")
    parser.add_argument("--pyrefly", metavar="PATH", help="the pyrefly command")
    parser.add_argument("--folder", action="append", choices=sorted(FOLDERS), help="only this one")
    parser.add_argument("--release", default="sglang==0.5.23", help="what is linted")
    parser.add_argument("--rounds", type=int, default=2, help="turns of every contender")
    return parser.parse_args()


def _measure(
    root: Path, tree: Path, cache: Path, pyrefly: str, chosen: list[str], rounds: int
) -> dict[str, object]:
    lint = [sys.executable, "-m", "shapecheck", "lint"]
    # Both contenders slow down beside other work, but not alike: the load belongs to the figures.
    load = [round(one, 1) for one in os.getloadavg()]
    results: dict[str, object] = {"pyrefly": _version(pyrefly), "load before": load}
    limits: dict[str, bool] = {}
    for name in chosen:
        folder = FOLDERS[name]
        best: dict[str, Cost] = {}
        edits = 0
        for _ in range(rounds):
            for kept in (cache, tree / ".shapecheck_cache"):
                shutil.rmtree(kept, ignore_errors=True)
            for state in ("cold", "warm"):
                if state == "warm":
                    edits += 1
                    text = (root / EDITED).read_text(encoding="utf-8")
                    (tree / EDITED).write_text(edited(text, edits), encoding="utf-8")
                for tool, command in (
                    ("lint", [*lint, folder, "--output-format", "concise"]),
                    ("pyrefly", [pyrefly, "check", folder, "--progress-bar", "no"]),
                ):
                    cost = run(command, tree, {"SHAPECHECK_CACHE_DIR": str(cache)})
                    key = f"{tool} {state}"
                    if key not in best or cost.wall < best[key].wall:
                        best[key] = cost
        results[name] = {key: asdict(cost) for key, cost in best.items()} | {
            "ratio cold": round(best["lint cold"].wall / best["pyrefly cold"].wall, 2),
            "ratio warm": round(best["lint warm"].wall / best["pyrefly warm"].wall, 2),
            "files": _files([*lint, folder], tree, cache),
        }
        limits |= reached(name, best)
    shown = [run([*lint, "--help"], tree, {}).wall for _ in range(3)]
    results["help seconds"] = round(min(shown), 3)
    limits["help"] = min(shown) <= HELP_SECONDS
    results["limits"] = limits
    results["reached"] = all(limits.values())
    return results


def reached(name: str, best: Mapping[str, Cost]) -> dict[str, bool]:
    """Which limits one folder kept."""
    cold, warm = best["lint cold"], best["lint warm"]
    return {
        f"{name} ran": cold.status in (0, 1) and warm.status in (0, 1),
        f"{name} cold": cold.wall <= COLD[name] * best["pyrefly cold"].wall,
        f"{name} warm": warm.wall <= min(WARM_SECONDS[name], best["pyrefly warm"].wall),
        f"{name} memory": max(cold.memory, warm.memory) <= MEMORY_MB,
    }


def run(command: list[str], folder: Path, environment: Mapping[str, str]) -> Cost:
    """Run a command to its end and say what it cost; output is thrown away."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = started + _LIMIT_SECONDS
    memory = 0
    looks = 0
    while True:
        if looks % _LOOKS == 0:
            memory = max(memory, _memory(process.pid))
        looks += 1
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.perf_counter() > deadline:
            process.kill()
        time.sleep(0.002)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(
        wall=round(wall, 3),
        processor=round(usage.ru_utime + usage.ru_stime, 3),
        memory=round(max(memory, usage.ru_maxrss) / 1024, 1),
        status=process.returncode,
    )


def edited(text: str, number: int) -> str:
    """The text with one assignment of its longest method followed by another one."""
    methods = (
        node
        for cls in ast.parse(text).body
        if isinstance(cls, ast.ClassDef)
        for node in cls.body
        if isinstance(node, ast.FunctionDef)
    )
    longest = max(methods, key=lambda node: (node.end_lineno or 0) - node.lineno)
    line = next(
        node.lineno
        for node in ast.walk(longest)
        if isinstance(node, ast.Assign) and node.lineno == node.end_lineno
    )
    lines = text.split("\n")
    lines[line - 1] += f"; edited = {number}"
    return "\n".join(lines)


def _memory(pid: int) -> int:
    """What a process and all below it hold in KB, shared pages shared out; 0 once it has ended."""
    try:
        process = Path("/proc", str(pid))
        fields = (process / "smaps_rollup").read_text().split()
        children = (process / "task" / str(pid) / "children").read_text().split()
    except OSError:
        return 0
    own = int(fields[fields.index("Pss:") + 1]) if "Pss:" in fields else 0
    return own + sum(_memory(int(child)) for child in children)


def _files(command: list[str], tree: Path, cache: Path) -> dict[str, object]:
    """How many files and lines there are, and what of them was read and left out."""
    done = subprocess.run(
        [*command, "--output-format", "json"],
        cwd=tree,
        env={**os.environ, "SHAPECHECK_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    summary = json.loads(done.stdout)["summary"]
    return {name: summary[name] for name in ("files", "files_skipped", "lines", "lines_loaded")}


def _checks(pyrefly: str, folder: Path) -> bool:
    """Whether pyrefly finds files there: one that reads nothing would be fast."""
    command = [pyrefly, "check", str(folder), "--progress-bar", "no"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return "No Python files" not in done.stdout + done.stderr and done.returncode in (0, 1)


def _version(pyrefly: str) -> str:
    done = subprocess.run([pyrefly, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
