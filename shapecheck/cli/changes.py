"""The lines that changed since a revision, as git tells them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.diagnostics.places import spans
from shapecheck.errors import ShapecheckError

_SECONDS = 60
_HUNK = re.compile(r"@@ -\S+ \+(?P<start>\d+)(?:,(?P<count>\d+))? @@")
# A repository is input: its hooks and monitors are not to be started (nor are its diff drivers).
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.quotepath=off", "-c", "core.hooksPath=/dev/null")
_WHOLE = range(1, 1 << 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changed ranges of lines by absolute path."""

    lines: Mapping[Path, tuple[range, ...]]

    def touch(self, finding: Diagnostic, root: Path) -> bool:
        """Whether a changed line is named by a finding or by its chain."""
        if finding.primary is None or finding.code in ("SHP901", "SHP903"):
            return True
        return any(
            span.line in changed
            for span in spans(finding)
            for changed in self.lines.get((root / span.path).resolve(), ())
        )


def read_changes(folder: Path, revision: str) -> Changes:
    """What differs between the files of a folder's repository and a revision.

    The revision is taken where the work forked from it. Lines next to a deletion count as changed,
    and every line of an untracked file. ShapecheckError when there is no repository or revision.
    """
    top = Path(_git(folder, "rev-parse", "--show-toplevel", fault=_no_repository(folder)).strip())
    wanted = f"{revision}^{{commit}}"
    commit = _git(
        top,
        *("rev-parse", "--verify", "--quiet", "--end-of-options", wanted),
        fault=f"--diff-base {revision}: {top} has no such revision; fetch it, or name one that "
        "`git log` shows (a shallow clone of CI needs its history)",
    ).strip()
    base = _git(top, "merge-base", commit, "HEAD").strip() or commit
    diff = _git(
        top,
        *("diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"),
        *("--no-prefix", "--ignore-submodules", base, "--", "*.py"),
        fault=f"--diff-base {revision}: git cannot compare with it; run `git diff {revision}`",
    )
    lines = {(top / name).resolve(): tuple(found) for name, found in _hunks(diff).items()}
    untracked = _git(top, "ls-files", "--others", "--exclude-standard", "-z", "--", "*.py")
    for name in filter(None, untracked.split("\0")):
        lines[(top / name).resolve()] = (_WHOLE,)
    return Changes(lines=lines)


def _hunks(diff: str) -> dict[str, list[range]]:
    found: dict[str, list[range]] = {}
    ranges: list[range] = []
    inside = 0
    for line in diff.split("\n"):
        if inside:
            # Content that looks like a header must not be taken for one.
            inside -= line[:1] == "+"
            if line[:1] in ("+", "-", "\\"):
                continue
        match = _HUNK.match(line)
        if match is not None:
            start, count = int(match["start"]), int(match["count"] or 1)
            ranges.append(range(start, start + (count or 2)))
            inside = count
        elif line.startswith("+++ "):
            ranges = found.setdefault(_name(line[4:]), [])
    return found


def _name(shown: str) -> str:
    """The path of a `+++` line; git puts a tab after names with spaces, and quotes odd ones."""
    shown = shown.rstrip("\t\r")
    if shown.startswith('"') and shown.endswith('"'):
        return shown[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
    return shown


def _no_repository(folder: Path) -> str:
    return (
        f"--diff-base: {folder} is not inside a git repository; lint a checkout, or leave the "
        "option out"
    )


def _git(folder: Path, *words: str, fault: str = "") -> str:
    """What git prints; on failure an empty text, or ShapecheckError with `fault`."""
    environment = {
        **os.environ,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            ["git", *_SAFE, "-C", str(folder), *words],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
            env=environment,
        )
    except FileNotFoundError:
        raise ShapecheckError("--diff-base needs git, which is not installed") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ShapecheckError(f"--diff-base: git did not answer ({error}); try again") from None
    if done.returncode:
        if b"dubious ownership" in done.stderr:
            fault = f"--diff-base: git does not trust {folder}, another user's; see safe.directory"
        if fault:
            raise ShapecheckError(fault)
        return ""
    return done.stdout.decode("utf-8", "surrogateescape")
