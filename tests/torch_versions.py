"""The trace part of the suite on several torch: `python -m tests.torch_versions [--only 2.11]`.

Each version gets a virtual environment in the cache folder (SHAPECHECK_CACHE_DIR), with what the
project and its tests need beside torch; the project itself comes without its dependencies, so that
its own bound on torch does not decide what is tried. The newest is the newest that can be
installed; what was tried before it is said.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from shapecheck.static.release import cache_folder

ROOT = Path(__file__).parents[1]
TRACE_PART = ("tests/unit/symbolic", "tests/mdtest/kinds", "tests/unit/engine/test_traced.py")
VERSIONS = ("2.11", "2.13", "newest")
# How many releases below the newest may be tried when it cannot be installed.
_TRIES = 3
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of the trace part on one torch; `said` is why it did not run, if it did not."""

    torch: str
    passed: int = 0
    skipped: int = 0
    failed: int = 0
    said: str = ""

    def row(self) -> str:
        """One line of the table."""
        if self.said:
            return f"{self.torch:<14} {self.said}"
        return f"{self.torch:<14} {self.passed:>6} {self.skipped:>7} {self.failed:>6}"


def main() -> int:
    """Exit 0 when every version ran and none failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", metavar="VERSION", help="2.11, 2.13.0, newest")
    parser.add_argument("tests", nargs="*", default=TRACE_PART, help="other tests to run")
    options = parser.parse_args()
    outcomes: list[Outcome] = []
    for wanted in options.only or VERSIONS:
        for version in candidates(wanted, available()):
            outcomes.append(_tried(version, options.tests))
            if not outcomes[-1].said:
                break
    print(f"{'torch':<14} passed skipped failed")
    for outcome in outcomes:
        print(outcome.row())
    ran = [outcome for outcome in outcomes if not outcome.said]
    complete = len(ran) == len(options.only or VERSIONS)
    return 0 if complete and all(one.passed and not one.failed for one in ran) else 1


def available() -> list[str]:
    """Every torch that the index offers for this Python, the newest first."""
    command = [sys.executable, "-m", "pip", "index", "versions", "torch"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(r"[0-9][^,\s]*", found.partition("Available versions:")[2].splitlines()[0])


def candidates(wanted: str, offered: Sequence[str]) -> list[str]:
    """The versions to try for `2.11`, `2.13.0` or `newest`, the best first; raises SystemExit."""
    if wanted == "newest":
        return list(offered[:_TRIES])
    found = [
        one for one in offered if one == wanted or one.startswith((f"{wanted}.", f"{wanted}+"))
    ]
    if not found:
        raise SystemExit(f"torch {wanted}: the index offers {', '.join(offered[:8])}")
    return found[:1]


def requirements(project: dict[str, object], extra: str) -> list[str]:
    """What the project and one extra need, torch and the project itself left out."""
    name = str(project["name"])
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    found: list[str] = []
    for line in [*_texts(project["dependencies"]), *_texts(extras[extra])]:
        if line.startswith(f"{name}["):
            found += requirements(project, line[len(name) + 1 :].partition("]")[0])
        elif _NAME.match(line) and _NAME.match(line)[0] not in ("torch", "triton"):
            found.append(line)
    return list(dict.fromkeys(found))


def counts(report: Path) -> tuple[int, int, int]:
    """Passed, skipped and failed tests of a JUnit report; an error counts as failed."""
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    total, errors, failures, skipped = (
        int(suite.get(key, "0")) for key in ("tests", "errors", "failures", "skipped")
    )
    return total - errors - failures - skipped, skipped, errors + failures


def _tried(version: str, tests: Iterable[str]) -> Outcome:
    folder = cache_folder() / "torch" / version
    python = folder / "bin" / "python"
    if not (folder / "complete").is_file():
        said = _install(folder, python, version)
        if said:
            return Outcome(torch=version, said=said)
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    subprocess.run([*command, *tests], cwd=ROOT, check=False)
    if not report.is_file():
        return Outcome(torch=version, said="pytest did not start; its output is above")
    passed, skipped, failed = counts(report)
    return Outcome(torch=version, passed=passed, skipped=skipped, failed=failed)


def _install(folder: Path, python: Path, version: str) -> str:
    """Why the environment could not be made, or nothing."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = (
        [sys.executable, "-m", "venv", folder],
        [*pip, f"torch=={version}"],
        [*pip, f"torch=={version}", *requirements(project, "test")],
        [*pip, "--no-deps", "--editable", ROOT],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return f"not installed: {(errors or ['pip failed'])[0]}"
    (folder / "complete").touch()
    return ""


def _texts(value: object) -> list[str]:
    assert isinstance(value, list)
    return [str(line) for line in value]


if __name__ == "__main__":
    sys.exit(main())
