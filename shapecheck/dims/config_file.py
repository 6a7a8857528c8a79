"""ConfigFile: one `config.json`, read with care, and typed reads that say where a number stands."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from shapecheck.diagnostics.model import Span
from shapecheck.errors import ShapecheckError

Json = Mapping[str, object]
Source = str | os.PathLike[str] | Json

_MAX_BYTES = 8 * 2**20  # real ones have a few kB; more is a weight or tokenizer file
MAX_SIZE = 2**31 - 1

# Where multimodal and speculator checkpoints keep the language model, outermost first.
_NESTED = ("thinker_config", "text_config", "llm_config", "language_config")
_NESTED_HEAD = "transformer_layer_config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One whole number of a config, with its key and the words that say where it stands."""

    value: int
    key: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """The object of one `config.json`; `label` is what messages call it (`target/config.json`)."""

    label: str
    path: str | None
    text: str
    root: Json

    def fault(self, what: str, remedy: str) -> ShapecheckError:
        """The error for this file, ending in what to do."""
        return ShapecheckError(f"SHP903 unreadable-file: {self.label}: {what}; {remedy}")

    def span(self, key: str) -> Span | None:
        """The line of `key` if the file names it once, else the first; None for a mapping."""
        if self.path is None:
            return None
        hits = list(re.finditer(rf'"{re.escape(key)}"\s*:', self.text)) if key else []
        if len(hits) != 1:
            return Span(path=self.path, line=1)
        start = hits[0].start()
        line_start = self.text.rfind("\n", 0, start) + 1
        line = self.text.count("\n", 0, start) + 1
        return Span(path=self.path, line=line, column=start - line_start + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The object of a ConfigFile that describes the language model: the root, or a nested one."""

    file: ConfigFile
    prefix: str
    values: Json

    def where(self, key: str) -> str:
        """`text_config.hidden_size in target/config.json`."""
        return f"{self.prefix}{key} in {self.file.label}"

    def integer(self, key: str, *, low: int = 1) -> Reading | None:
        """The whole number at `key`; None when the key is absent or null."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= MAX_SIZE:
            raise self.file.fault(
                f"{self.prefix}{key} is {shown(value)}",
                f"set it to a whole number from {low} to {MAX_SIZE}",
            )
        return Reading(value=value, key=key, origin=self.where(key))

    def required(self, key: str) -> Reading:
        """The whole number at `key`, which a model of this family always has."""
        reading = self.integer(key)
        if reading is None:
            raise self.file.fault(
                f"{self.prefix}{key} is missing",
                "use the config.json that came with the checkpoint (Llama, Qwen2 and Qwen3 "
                "layouts are read), or add the key",
            )
        return reading

    def string(self, key: str) -> str | None:
        """The text at `key`; None when the key is absent or null."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self.file.fault(f"{self.prefix}{key} is {shown(value)}", "set it to a string")
        return value

    def layer_numbers(self, key: str) -> tuple[int, ...]:
        """The list of layer numbers at `key`, empty when the key is absent or null."""
        items = self._items(key, "layer numbers such as [2, 16, 29]")
        kept = tuple(n for n in items if isinstance(n, int) and not isinstance(n, bool) and n >= 0)
        if len(kept) != len(items):
            raise self._not_a_list(key, "layer numbers such as [2, 16, 29]")
        return kept

    def strings(self, key: str) -> tuple[str, ...]:
        """The list of strings at `key`, empty when the key is absent or null."""
        items = self._items(key, "names")
        kept = tuple(item for item in items if isinstance(item, str))
        if len(kept) != len(items):
            raise self._not_a_list(key, "names")
        return tuple(map(printable, kept))

    def _items(self, key: str, of: str) -> list[object]:
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._not_a_list(key, of)
        return cast("list[object]", value)

    def _not_a_list(self, key: str, of: str) -> ShapecheckError:
        return self.file.fault(
            f"{self.prefix}{key} is {shown(self.values[key])}",
            f"set it to a list of {of}, or remove it",
        )


def language_section(file: ConfigFile) -> Section:
    """The section of the language model, inside `text_config` or its like where there is one."""
    section = root_section(file)
    for key in (*_NESTED, _NESTED_HEAD):
        inner = subsection(section, key)
        section = section if inner is None else inner
    return section


def root_section(file: ConfigFile) -> Section:
    """The outermost object, where dtype and the keys of a draft head stand."""
    return Section(file=file, prefix="", values=file.root)


def subsection(section: Section, key: str) -> Section | None:
    """The object at `key`; None when the key is absent or null."""
    value = section.values.get(key)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise section.file.fault(
            f"{section.prefix}{key} is {shown(value)}", "set it to an object or remove it"
        )
    prefix = f"{section.prefix}{key}."
    return Section(file=section.file, prefix=prefix, values=cast("Json", value))


def read_config(source: Source, *, role: str) -> ConfigFile:
    """The config at `source`: a mapping, a `config.json`, or the folder that holds one.

    Raises ShapecheckError for anything that is not a readable JSON object of sane length.
    """
    if isinstance(source, Mapping):
        return ConfigFile(label=f"the {role} config", path=None, text="", root=source)
    try:
        given = Path(source)
        path = given / "config.json" if given.is_dir() else given
        label = printable(f"{Path(os.path.abspath(path)).parent.name}/{path.name}".lstrip("/"))
        return _parse(path, label)
    except ShapecheckError:
        raise
    except (OSError, ValueError, TypeError) as error:  # a null byte, a number for a path
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise ShapecheckError(
            f"SHP903 unreadable-file: {role} config {shown(str(source))}: {reason}; "
            "pass a config.json or the folder that holds it (a model id is not fetched)"
        ) from None


def _parse(path: Path, label: str) -> ConfigFile:
    empty = ConfigFile(label=label, path=str(path), text="", root={})
    if path.exists() and not path.is_file():
        raise empty.fault("is not a regular file", "pass the config.json of a checkpoint")
    with path.open("rb") as stream:
        raw = stream.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise empty.fault(
            f"has more than {_MAX_BYTES // 2**20} MiB", "pass the config.json, not the weights"
        )
    try:
        text = raw.decode("utf-8-sig")
        root = json.loads(text)
    except UnicodeDecodeError:
        raise empty.fault("is not UTF-8 text", "pass the config.json, not the weights") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise empty.fault(f"is not JSON ({error.msg}, {where})", "correct that line") from None
    except (ValueError, RecursionError):
        raise empty.fault(
            "holds a number or a nesting too large to read", "pass the checkpoint's own config.json"
        ) from None
    if not isinstance(root, dict):
        raise empty.fault(
            f"holds {shown(root)}, not an object", "pass the config.json of a checkpoint"
        )
    return ConfigFile(label=label, path=str(path), text=text, root=cast("Json", root))


def printable(text: str) -> str:
    """The text with newlines and terminal commands escaped: a config may come from anyone."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def shown(value: object) -> str:
    """A value fit for one line of a message, whatever its length."""
    if isinstance(value, (list, tuple)):
        return f"a list of {len(cast('list[object]', value))}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
