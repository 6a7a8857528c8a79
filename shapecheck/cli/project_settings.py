"""The table `[tool.shapecheck]`: its keys, their types, and what is said of any other key."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shapecheck.cli.table_file import TABLE, read_table
from shapecheck.errors import ShapecheckError


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class ProjectSettings(BaseModel):
    """What a project says once for every run; an option of the command line wins over it."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, alias_generator=_kebab, populate_by_name=False
    )

    output_format: Literal["full", "concise", "json", "github", "sarif"] | None = None
    select: list[str] = Field(default_factory=list[str])
    ignore: list[str] = Field(default_factory=list[str])
    per_file_ignores: dict[str, list[str]] = Field(default_factory=dict[str, list[str]])
    exclude: list[str] = Field(default_factory=list[str])
    packs: list[str] = Field(default_factory=list[str])
    baseline: str | None = None
    cache: bool = True


def read_settings(file: Path) -> ProjectSettings:
    """The settings in a file's table; ShapecheckError names a key or value that is not known."""
    table = read_table(file)
    if table is None:
        raise ShapecheckError(f"{file}: it has no table {TABLE}; add one, or name another file")
    try:
        return ProjectSettings.model_validate(table)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise ShapecheckError(
            _explain(file, problem["type"], [str(part) for part in problem["loc"]], problem["msg"])
        ) from None


def _explain(file: Path, kind: str, where: list[str], message: str) -> str:
    keys = sorted(_kebab(name) for name in ProjectSettings.model_fields)
    if kind != "extra_forbidden":
        return f"{file}: {TABLE} {'.'.join(where)}: {message}; see docs/lint.md for its values"
    near = difflib.get_close_matches(_kebab(where[-1]).lower(), keys, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{file}: {TABLE} has no key {where[-1]}; {hint}its keys are {', '.join(keys)}"
