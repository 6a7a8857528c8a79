"""Tokenizer: text to ids and back, from `tokenizer.json`, a GGUF file or plain bytes."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as FastTokenizer

from engine.errors import CheckpointError, EngineError
from engine.models.config import ModelConfig
from engine.models.loader.base import Checkpoint
from engine.models.loader.gguf import GgufCheckpoint

_CONTROL = 3  # token_type of GGUF
_USER_DEFINED = 4
_QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3_SPLIT = _QWEN_SPLIT.replace(r"\p{N}|", r"\p{N}{1,3}|")


class Tokenizer(ABC):
    """`eos_ids` end a text; `vocab` is the number of ids."""

    vocab: int
    eos_ids: tuple[int, ...]

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of the text; special tokens written in it are recognised, none is added."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids without special tokens; bytes of no character become U+FFFD."""

    def chat(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The prompt of a conversation; EngineError when the model has no chat template."""
        raise EngineError("this model has no chat template; give a plain prompt instead")


class ByteTokenizer(Tokenizer):
    """One id per UTF-8 byte, and 256 for the end of the text: the tiny models' tokenizer."""

    vocab = 258
    eos_ids = (256,)

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8"))

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(token for token in ids if token < 256).decode("utf-8", errors="replace")


class BpeTokenizer(Tokenizer):
    """A tokenizer of the `tokenizers` library."""

    def __init__(
        self, inner: FastTokenizer, *, eos_ids: tuple[int, ...], template: str | None = None
    ) -> None:
        self.inner = inner
        self.vocab = inner.get_vocab_size(with_added_tokens=True)
        self.eos_ids = eos_ids
        self.template = template

    def encode(self, text: str) -> list[int]:
        return self.inner.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        return self.inner.decode(list(ids), skip_special_tokens=True)

    def chat(self, messages: Sequence[Mapping[str, str]]) -> str:
        if self.template is None:
            return super().chat(messages)
        # A template is a program that comes with the weights: it runs in a sandbox.
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        try:
            compiled = environment.from_string(self.template)
            return compiled.render(messages=list(messages), add_generation_prompt=True)
        except TemplateError as error:
            raise EngineError(
                f"the model's chat template refuses these messages ({error}); "
                "give role and content of each, or a plain prompt"
            ) from None


def load_tokenizer(checkpoint: Checkpoint, config: ModelConfig) -> Tokenizer:
    """The tokenizer beside or inside a checkpoint; CheckpointError when there is none."""
    if isinstance(checkpoint, GgufCheckpoint):
        return _from_gguf(checkpoint.metadata, checkpoint.source)
    path = Path(checkpoint.source)
    file = path / "tokenizer.json"
    if not file.is_file():
        raise CheckpointError(f"{file} does not exist; save the tokenizer beside the weights")
    try:
        inner = FastTokenizer.from_file(str(file))
    except Exception as error:  # the library raises bare Exception
        raise CheckpointError(f"{file} is no tokenizer file ({error}); download it again") from None
    settings = _read_settings(path / "tokenizer_config.json")
    template = settings.get("chat_template")
    return BpeTokenizer(
        inner,
        eos_ids=config.eos_ids or _named_eos(inner, settings),
        template=template if isinstance(template, str) else None,
    )


def _read_settings(file: Path) -> Mapping[str, object]:
    if not file.is_file():
        return {}
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{file} is not JSON ({error}); download it again") from None
    return settings if isinstance(settings, dict) else {}


def _named_eos(inner: FastTokenizer, settings: Mapping[str, object]) -> tuple[int, ...]:
    name = settings.get("eos_token")
    if isinstance(name, Mapping):
        name = name.get("content")
    token = inner.token_to_id(name) if isinstance(name, str) else None
    return () if token is None else (token,)


def _from_gguf(metadata: Mapping[str, object], file: str) -> Tokenizer:
    if metadata.get("tokenizer.ggml.model") != "gpt2":
        raise CheckpointError(
            f"{file}: its tokenizer is {metadata.get('tokenizer.ggml.model')!r}, only byte-level "
            "BPE ('gpt2') is read from GGUF files; use the model's safetensors folder"
        )
    kind = metadata.get("tokenizer.ggml.pre")
    if not isinstance(kind, str) or kind not in _SPLITS:
        raise CheckpointError(
            f"{file}: pre-tokenizer {kind!r} is not known (known: {', '.join(_SPLITS)}); "
            "use the model's safetensors folder"
        )
    tokens, merges, types = (
        _list(metadata, key, file) for key in ("tokens", "merges", "token_type")
    )
    inner = FastTokenizer(
        models.BPE(
            vocab={token: number for number, token in enumerate(tokens)},
            merges=[tuple(merge.split(" ")) for merge in merges],
        )
    )
    inner.pre_tokenizer = pre_tokenizers.Sequence(_SPLITS[kind])
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(_added(tokens, types, _CONTROL, special=True))
    inner.add_tokens(_added(tokens, types, _USER_DEFINED, special=False))
    eos = metadata.get("tokenizer.ggml.eos_token_id")
    template = metadata.get("tokenizer.chat_template")
    return BpeTokenizer(
        inner,
        eos_ids=(eos,) if isinstance(eos, int) else (),
        template=template if isinstance(template, str) else None,
    )


def _list(metadata: Mapping[str, object], key: str, file: str) -> list[Any]:
    values = metadata.get(f"tokenizer.ggml.{key}")
    if not isinstance(values, list):
        raise CheckpointError(f"{file}: tokenizer.ggml.{key} is missing; download the file again")
    return values


def _added(tokens: list[str], types: list[int], kind: int, *, special: bool) -> list[AddedToken]:
    return [
        AddedToken(token, normalized=False, special=special)
        for token, token_type in zip(tokens, types, strict=False)
        if token_type == kind
    ]


def _bytes(*, use_regex: bool) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def _split(pattern: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(pattern), behavior="isolated")


_SPLITS: Mapping[str, list[pre_tokenizers.PreTokenizer]] = {
    "gpt-2": [_bytes(use_regex=True)],
    "smollm": [pre_tokenizers.Digits(individual_digits=True), _bytes(use_regex=True)],
    "qwen2": [_split(_QWEN_SPLIT), _bytes(use_regex=False)],
    "llama-bpe": [_split(_LLAMA3_SPLIT), _bytes(use_regex=False)],
}
