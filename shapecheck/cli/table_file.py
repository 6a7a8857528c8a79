"""The pyproject.toml that holds `[tool.shapecheck]`: found upward from what is linted."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from shapecheck.errors import ShapecheckError

TABLE = "[tool.shapecheck]"
_FILE = "pyproject.toml"


def find_table(start: Path) -> Path | None:
    """The nearest pyproject.toml with the table, in the folder of `start` or above it."""
    folder = start if start.is_dir() else start.parent
    for candidate in [folder, *folder.parents]:
        file = candidate / _FILE
        if file.is_file() and read_table(file) is not None:
            return file
    return None


def read_table(file: Path) -> Mapping[str, object] | None:
    """The keys of the table, or None when the file has none; ShapecheckError for broken TOML."""
    try:
        document = tomllib.loads(file.read_bytes().decode())
    except OSError as error:
        raise ShapecheckError(
            f"{file}: it cannot be read ({error.strerror}); check the path and its permissions"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = (str(error).splitlines() or ["nested too deeply"])[0]
        raise ShapecheckError(f"{file}: it is not valid TOML ({reason}); repair it") from None
    tool = document.get("tool")
    if not isinstance(tool, dict) or "shapecheck" not in tool:
        return None
    table = cast("dict[str, object]", tool)["shapecheck"]
    if not isinstance(table, dict):
        raise ShapecheckError(f"{file}: tool.shapecheck is no table; write {TABLE} and keys below")
    return cast("dict[str, object]", table)
