"""Safetensors folders: one `model.safetensors`, or shards under an index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.errors import CheckpointError
from engine.models.loader.base import Checkpoint

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_MAX_HEADER = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    shape: tuple[int, ...]
    file: Path


class SafetensorsCheckpoint(Checkpoint):
    """The tensors of a folder; headers are read and compared with the file sizes at once."""

    def __init__(self, folder: Path) -> None:
        self.source = str(folder)
        self._entries: dict[str, _Entry] = {}
        index = folder / _INDEX
        if index.is_file():
            self._open_shards(folder, index)
        elif (folder / _SINGLE).is_file():
            self._entries = _read_header(folder / _SINGLE)
        else:
            raise CheckpointError(_nothing_here(folder))

    def _open_shards(self, folder: Path, index: Path) -> None:
        where = _read_index(index)
        headers: dict[str, dict[str, _Entry]] = {}
        for shard in sorted(set(where.values())):
            file = folder / shard
            if Path(shard).name != shard:
                raise CheckpointError(
                    f"{index}: shard {shard!r} lies outside the folder; "
                    "an index names files beside it: download the checkpoint again"
                )
            if not file.is_file():
                raise CheckpointError(
                    f"{index} names the shard {shard}, which is absent; download {file}"
                )
            headers[shard] = _read_header(file)
        for name, shard in where.items():
            if name not in headers[shard]:
                raise CheckpointError(
                    f"{index} places {name} in {shard}, which does not hold it; "
                    "download the index and its shards together"
                )
        for entries in headers.values():
            self._entries.update(entries)

    def names(self) -> Iterable[str]:
        return self._entries.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entries[name].shape

    def where(self, name: str) -> str:
        return str(self._entries[name].file)

    def tensor(self, name: str) -> Tensor:
        file = self._entries[name].file
        try:
            with safe_open(file, framework="pt", device="cpu") as handle:
                return handle.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise CheckpointError(
                f"{file}: {name} cannot be read ({error}); download the file again"
            ) from None


def _read_index(index: Path) -> Mapping[str, str]:
    try:
        where = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{index} is no safetensors index ({error}); download it again"
        ) from None
    if not isinstance(where, dict) or not all(isinstance(shard, str) for shard in where.values()):
        raise CheckpointError(f"{index}: weight_map must map names to files; download it again")
    return where


def _read_header(file: Path) -> dict[str, _Entry]:
    """Names and shapes of one file; CheckpointError when it is shorter than it promises."""
    size = file.stat().st_size
    with file.open("rb") as handle:
        prefix = handle.read(8)
        length = int.from_bytes(prefix, "little")
        if len(prefix) < 8 or length > min(size - 8, _MAX_HEADER):
            raise CheckpointError(
                f"{file}: the header promises {length} bytes and the file has {size}; "
                "it is truncated or no safetensors file: download it again"
            )
        text = handle.read(length)
    try:
        header = json.loads(text)
        entries = {
            name: (tuple(int(n) for n in value["shape"]), int(value["data_offsets"][1]))
            for name, value in header.items()
            if name != "__metadata__"
        }
    except (UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise CheckpointError(
            f"{file}: the header is corrupt (not the JSON of a safetensors file); download it again"
        ) from None
    for name, (_, end) in entries.items():
        if 8 + length + end > size:
            raise CheckpointError(
                f"{file} is truncated: {name} ends at byte {8 + length + end} and the file has "
                f"{size}; download it again"
            )
    return {name: _Entry(shape=shape, file=file) for name, (shape, _) in entries.items()}


def _nothing_here(folder: Path) -> str:
    if not folder.is_dir():
        return f"{folder} does not exist; give a folder with config.json and {_SINGLE}"
    pickles = sorted(folder.glob("*.bin")) + sorted(folder.glob("*.pt"))
    if pickles:
        return (
            f"{pickles[0]} is a pickle, which can run code when it is read; "
            f"convert the model to {_SINGLE}"
        )
    return f"{folder} holds neither {_SINGLE} nor {_INDEX}; download the weights"
