"""The owner table: which names say whose model something is, and which say what a size is.

An owner comes, in this order, from a pack or an annotation, from how an object is constructed
(`is_draft_worker=True`), from its name, and from what it is an attribute of. The names here are
the field's; none belongs to one engine.

| evidence | says |
|---|---|
| `target_*`, `verifier*` | owner target |
| `draft_*`, `drafter*`, `assistant_*` | owner draft |
| `*tokenizer` | its `vocab_size` is no model's: those are padded and hold reserved ids |
| keyword `is_draft*=True` in a constructor | the object is the draft's |
| the same keyword left at its default False | the object is the target's |
| `hidden_size`, `d_model`, `n_embd`, `hidden_dim` | the size is `hidden` |
| `vocab_size`, `n_vocab` | the size is `vocab` |
| tensor named `*hidden_states`, `*embeds` | its last axis is `hidden` of its owner |
| tensor named `*logits` | its last axis is `vocab` of its owner |
| function named `to_target*`, `to_draft*` | what it returns is no longer the other model's |
"""

from __future__ import annotations

import re
from functools import lru_cache

TARGET = "target"
DRAFT = "draft"
TOKENIZER = "tokenizer"

_OWNER_WORDS = {
    "target": TARGET,
    "verifier": TARGET,
    "draft": DRAFT,
    "drafter": DRAFT,
    "assistant": DRAFT,
}
# A qualifier says which text of the config or whose use is meant, never another kind of size.
_QUALIFIERS = ("target_", "draft_", "assistant_", "speculative_", "spec_", "model_", "text_", "hf_")
_SIZE_NAMES = {
    "hidden_size": "hidden",
    "hidden_dim": "hidden",
    "d_model": "hidden",
    "n_embd": "hidden",
    "vocab_size": "vocab",
    "n_vocab": "vocab",
    "head_dim": "head_dim",
    "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads",
    "num_kv_heads": "kv_heads",
    "num_hidden_layers": "layers",
    "intermediate_size": "ffn",
}
_TENSOR_SUFFIXES = (
    ("hidden_states", "hidden"),
    ("inputs_embeds", "hidden"),
    ("input_embeds", "hidden"),
    ("logits", "vocab"),
)
_FLAG = re.compile(r"is_(?:draft|drafter|assistant)(?:_\w+)?$")
_CONVERTS = re.compile(r"_?to_(target|draft)(?:_|$)")
# Only these calls hand out what a model computed; any other method may return anything.
_MODEL_CALL = re.compile(r"_?(?:forward|execute|generate|compute_logits|__call__)")
_NOT_A_MODEL = re.compile(r"(?:server_args|args|token|tokens|ids|probs|len|lens|num|size)$")


@lru_cache(maxsize=65536)
def owner_of_name(name: str) -> str:
    """The owner that a name states by itself, or the empty text."""
    words = [word for word in name.lower().split("_") if word]
    if words and words[-1] == TOKENIZER:
        return TOKENIZER
    if not words or _NOT_A_MODEL.search(name):
        return ""
    first = _OWNER_WORDS.get(words[0], "")
    if first and len({_OWNER_WORDS[word] for word in words if word in _OWNER_WORDS}) == 1:
        return first
    return ""


@lru_cache(maxsize=65536)
def size_of_name(name: str) -> str:
    """The kind of size (`hidden`, `vocab`) that an attribute of a config states, or ''."""
    plain = name.lstrip("_")
    while plain not in _SIZE_NAMES:
        for qualifier in _QUALIFIERS:
            if plain.startswith(qualifier):
                plain = plain[len(qualifier) :]
                break
        else:
            return ""
    return _SIZE_NAMES[plain]


@lru_cache(maxsize=65536)
def size_owner_of_name(name: str) -> str:
    """The owner that the name of a SIZE states (`target_hidden_size`), whatever config holds it."""
    if not size_of_name(name):
        return ""
    return _OWNER_WORDS.get(name.lstrip("_").split("_", 1)[0], "")


@lru_cache(maxsize=65536)
def last_axis_of_name(name: str) -> str:
    """The kind of size of the last axis of a tensor with this name, or ''."""
    for suffix, size in _TENSOR_SUFFIXES:
        if name.endswith(suffix):
            return size
    return ""


@lru_cache(maxsize=65536)
def is_draft_flag(name: str) -> bool:
    """Whether a constructor keyword marks an object as the draft's."""
    return _FLAG.match(name) is not None


@lru_cache(maxsize=65536)
def is_model_call(name: str) -> bool:
    """Whether a method of this name hands out what the model computed."""
    return _MODEL_CALL.match(name) is not None


@lru_cache(maxsize=65536)
def converts_to(name: str) -> str:
    """Whose sizes a function of this name turns the other model's into, or ''."""
    match = _CONVERTS.match(name)
    return match[1] if match else ""


def is_config_name(name: str) -> bool:
    """Whether an attribute or a class of this name holds a model's configuration."""
    lowered = name.lower()
    return lowered.endswith(("config", "cfg", "configs"))
