"""`pack.toml`: which package and versions a pack describes, its phases and its owners."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from shapecheck.static.packs.model import PackError, plain_name
from shapecheck.static.packs.versions import VersionRange

_MAX_BYTES = 1024 * 1024


def _range(text: str) -> str:
    VersionRange.parse(text)
    return text


_Owned = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)?$")]


class Manifest(BaseModel):
    """The contents of `pack.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    package: str = Field(pattern=r"^[A-Za-z_]\w*$")
    versions: Annotated[str, AfterValidator(_range)] = ""
    distributions: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    owners: dict[_Owned, Literal["target", "draft"]] = {}

    @property
    def names(self) -> frozenset[str]:
        """The distributions that ship the package, as the index compares them."""
        return frozenset(plain_name(one) for one in self.distributions or (self.package,))


def read_manifest(file: Path) -> tuple[Manifest, str]:
    """The manifest and its text; PackError says which line or key is at fault."""
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise PackError(f"{file}: larger than a pack.toml can be; check the path")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise PackError(f"{file}: {error.strerror}; a pack is a folder with a pack.toml") from None
    except UnicodeDecodeError:
        raise PackError(f"{file}: not UTF-8; save it as UTF-8") from None
    try:
        return Manifest.model_validate(tomllib.loads(text)), text
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PackError(f"{file}: not TOML ({error}); repair the line it names") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise PackError(f"{file}: {key}: {_explained(key, first['type'], first['msg'])}") from None


def _explained(key: str, kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(key, Manifest.model_fields, n=1)
        hint = f"did you mean {near[0]}?" if near else "remove it"
        return f"no such key; {hint}"
    if kind == "missing":
        return 'it is required; write for example package = "sglang"'
    if key.startswith("owners"):
        return (
            'an owner is written "package.module:Class.attribute" = "target" or "draft"; rewrite it'
        )
    return f"{message.removeprefix('Value error, ')}; correct it"
