"""A model's own config with symbols for sizes: what real model code reads its widths from."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from shapecheck.errors import ShapecheckError

Config = TypeVar("Config")

# Attributes of a HF config, or plain names, and the dimension each one is.
_FIELDS = {
    "hidden_size": "hidden",
    "intermediate_size": "ffn",
    "vocab_size": "vocab",
    "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "head_dim",
    "num_hidden_layers": "layers",
    **{size: size for size in ("hidden", "ffn", "vocab", "heads", "kv_heads", "layers")},
}


def with_sizes(
    config: Config, model: str, sizes: Mapping[str, int], others: Mapping[str, int]
) -> Config:
    """A copy of a HF-style config (object, dataclass or mapping) that hands out `model`'s sizes.

    `others` are fields with a size of their own. Raises ShapecheckError when the config has none
    of the known fields.
    """
    changes = {
        field: sizes[f"{model}_{size}"]
        for field, size in _FIELDS.items()
        if f"{model}_{size}" in sizes and _has(config, field)
    }
    changes.update(others)
    if not changes:
        raise ShapecheckError(
            f"config({type(config).__name__}): none of {', '.join(_FIELDS)} is there; "
            "pass the model's own config, or read sizes from t.dims"
        )
    return cast(Config, _changed(config, changes))


def _has(config: object, field: str) -> bool:
    if isinstance(config, Mapping):
        return field in config
    return getattr(config, field, None) is not None


def _changed(config: Any, changes: Mapping[str, int]) -> object:
    if isinstance(config, Mapping):
        return {**cast("Mapping[str, object]", config), **changes}
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        parameters = getattr(config, "__dataclass_params__", None)
        if parameters is not None and parameters.frozen:
            return dataclasses.replace(config, **changes)
    changed = copy.copy(config)
    for field, size in changes.items():
        # Configs that check types at assignment would refuse a symbol.
        object.__setattr__(changed, field, size)
    return changed
