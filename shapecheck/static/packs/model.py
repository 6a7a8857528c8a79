"""A pack in memory: what it says, by name, and which releases it speaks of."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from shapecheck.diagnostics.model import Span
from shapecheck.errors import ShapecheckError
from shapecheck.static.contracts.promise import Promise
from shapecheck.static.packs.versions import VersionRange

MANIFEST = "pack.toml"


class PackError(ShapecheckError):
    """A pack that cannot be read; the text says where and what to do."""


@dataclass(frozen=True, slots=True)
class Name:
    """One name that a pack speaks of: `module`, then a class, a function or what is in them."""

    module: str
    holder: str = ""
    member: str = ""
    parameter: str = ""

    def __str__(self) -> str:
        inner = ".".join(part for part in (self.holder, self.member) if part)
        text = f"{self.module}:{inner}" if inner else self.module
        return f"{text}({self.parameter})" if self.parameter else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """One pack: `distributions` ship the package, `texts` are its files as read.

    `promises` and `phases` are what it says, by name; `spans` hold every name that it speaks of.
    """

    label: str
    package: str
    distributions: frozenset[str]
    versions: VersionRange
    texts: list[str] = field(default_factory=list[str])
    promises: dict[Name, Promise] = field(default_factory=dict[Name, Promise])
    phases: dict[Name, str] = field(default_factory=dict[Name, str])
    spans: dict[Name, Span] = field(default_factory=dict[Name, Span])

    @property
    def digest(self) -> str:
        """What tells two states of the pack apart."""
        return hashlib.sha256("\0".join(self.texts).encode()).hexdigest()


def plain_name(name: str) -> str:
    """The name of a distribution as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
