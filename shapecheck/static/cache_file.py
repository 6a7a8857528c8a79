"""One file of a cache: written at once or not at all, and known by its checksum when it is read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zlib
from pathlib import Path


def read_checked(file: Path) -> bytes | None:
    """The content of a file that `write_checked` wrote, or None when it is not whole."""
    try:
        checksum, _, body = file.read_bytes().partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != checksum:
            return None
        return zlib.decompress(body)
    except (OSError, zlib.error):
        return None


def write_checked(file: Path, content: bytes, *, packed: bool = False) -> None:
    """Keep a content; readers see the whole of it or nothing, whoever else writes.

    What is `packed` already is not compressed once more.
    Without a place to write, the next run takes as long as this one: nothing to report.
    """
    body = zlib.compress(content, 0 if packed else 1)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        ignore = file.parent / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
        handle, name = tempfile.mkstemp(prefix=".new-", dir=file.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
            os.replace(name, file)
        except OSError:
            os.unlink(name)
            raise
