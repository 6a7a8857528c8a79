"""The texts of many files, packed one by one: nearly all are only ever compared."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Packed = tuple[bytes, bytes]  # what tells a text from others, the text compressed


@dataclass(frozen=True, slots=True)
class Texts(Mapping[str, str]):
    """Texts by path, each unpacked when it is asked for."""

    packed: Mapping[str, Packed]

    @staticmethod
    def of(texts: Mapping[str, str], known: Texts | None = None) -> Texts:
        """These texts; those that are `known` are not packed again."""
        before: Mapping[str, Packed] = known.packed if known is not None else {}
        packed: dict[str, Packed] = {}
        for path, text in texts.items():
            digest = _digest(text)
            kept = before.get(path)
            same = kept is not None and kept[0] == digest
            packed[path] = kept if kept and same else (digest, zlib.compress(_bytes(text), 1))
        return Texts(packed)

    def edited(self, now: Mapping[str, str]) -> dict[str, str]:
        """The texts of those files that have another one now."""
        differ = (path for path, (digest, _) in self.packed.items() if _digest(now[path]) != digest)
        return {path: self[path] for path in differ}

    @property
    def digest(self) -> bytes:
        """What tells whether two are the same texts of the same files."""
        found = hashlib.sha256()
        for path, (digest, _) in sorted(self.packed.items()):
            found.update(_bytes(path) + b"\0" + digest)
        return found.digest()

    def __getitem__(self, path: str) -> str:
        return zlib.decompress(self.packed[path][1]).decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        return iter(self.packed)

    def __len__(self) -> int:
        return len(self.packed)


def _digest(text: str) -> bytes:
    return hashlib.sha256(_bytes(text)).digest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
