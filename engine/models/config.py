"""ModelConfig: what a Hugging Face `config.json` says, reduced to what the layers need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from engine.errors import CheckpointError, WidthError

Family = Literal["llama", "qwen2", "qwen3"]
RopeType = Literal["default", "linear", "dynamic", "llama3", "yarn"]

_FAMILIES: Mapping[str, Family] = {
    "LlamaForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "LlamaForCausalLMEagle": "llama",
    "LlamaForCausalLMEagle3": "llama",
}


class RopeConfig(BaseModel):
    """Rotary parameters; `original` is the context length the scaling starts from."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    kind: RopeType = Field(default="default", alias="rope_type")
    theta: float = Field(default=10000.0, alias="rope_theta", gt=0)
    factor: float | None = Field(default=None, ge=1)
    original: int | None = Field(default=None, alias="original_max_position_embeddings", gt=0)
    low_freq_factor: float | None = None
    high_freq_factor: float | None = None
    attention_factor: float | None = None
    beta_fast: float | None = None
    beta_slow: float | None = None
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True
    partial_rotary_factor: float = 1.0

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = {
            "linear": ("factor",),
            "dynamic": ("factor",),
            "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
        }
        for name in needed.get(self.kind, ()):
            if getattr(self, name) is None:
                raise ValueError(f"rope_type {self.kind!r} needs {name}")
        if self.partial_rotary_factor != 1.0:
            raise ValueError("partial_rotary_factor other than 1 is not supported")
        return self


class ModelConfig(BaseModel):
    """One model's sizes and switches; `source` names the file they were read from."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    source: str
    family: Family
    vocab: int = Field(alias="vocab_size", gt=0)
    hidden: int = Field(alias="hidden_size", gt=0)
    layers: int = Field(alias="num_hidden_layers", gt=0, le=1024)
    heads: int = Field(alias="num_attention_heads", gt=0)
    kv_heads: int = Field(alias="num_key_value_heads", gt=0)
    head_dim: int = Field(gt=0, multiple_of=2)
    ffn: int = Field(alias="intermediate_size", gt=0)
    norm_eps: float = Field(default=1e-6, alias="rms_norm_eps", ge=0)
    max_positions: int = Field(default=2048, alias="max_position_embeddings", gt=0)
    tied: bool = Field(default=False, alias="tie_word_embeddings")
    attention_bias: bool = False
    mlp_bias: bool = False
    act: Literal["silu"] = Field(default="silu", alias="hidden_act")
    rope: RopeConfig
    eos_ids: tuple[int, ...] = ()
    raw: Mapping[str, object] = Field(default_factory=dict, repr=False)

    def __init__(self, /, **values: object) -> None:
        """CheckpointError names the key that is refused; of a size it is a WidthError."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(str(part) for part in first["loc"]) or "config"
            message = (
                f"{values.get('source')}: {key}: {first['msg']}; correct this key of the config"
            )
            if key not in ("config", *self._sizes()):
                raise CheckpointError(message) from None
            # What is no field's alone is about heads and their groups.
            found = first["input"] if key != "config" else "heads that are no whole groups"
            raise WidthError.of(message, expected=key, found=found) from None

    @model_validator(mode="after")
    def _whole_groups(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(
                f"num_attention_heads={self.heads} is not a multiple of "
                f"num_key_value_heads={self.kv_heads}"
            )
        return self

    @property
    def qkv_bias(self) -> bool:
        """Whether q, k and v have a bias: Qwen2 always has one."""
        return self.family == "qwen2" or self.attention_bias

    @property
    def o_bias(self) -> bool:
        """Whether the attention's output projection has a bias."""
        return self.family != "qwen2" and self.attention_bias

    @property
    def qk_norm(self) -> bool:
        """Whether query and key heads are normalised before the rotation."""
        return self.family == "qwen3"

    @classmethod
    def from_hf(cls, raw: Mapping[str, object], *, source: str) -> Self:
        """The config in `raw`, the mapping of a `config.json`; CheckpointError names the key."""
        values = dict(raw)
        values["source"] = source
        values["raw"] = dict(raw)
        values["family"] = _family(raw, source)
        values["rope"] = _rope_values(raw, source)
        values["eos_ids"] = _ids(raw.get("eos_token_id"))
        if raw.get("num_key_value_heads") is None:
            values["num_key_value_heads"] = raw.get("num_attention_heads")
        if raw.get("head_dim") is None:
            values["head_dim"] = _head_dim(raw, values["family"])
        for key in ("attention_bias", "mlp_bias"):
            values[key] = bool(raw.get(key))
        _refuse_sliding_window(raw, source)
        return cls(**values)

    @classmethod
    def _sizes(cls) -> frozenset[str]:
        """The keys that hold sizes, by their names in the file and here."""
        sizes = {name: one for name, one in cls.model_fields.items() if one.annotation is int}
        return frozenset({*sizes, *(one.alias for one in sizes.values() if one.alias)})


def read_config(path: Path) -> ModelConfig:
    """The ModelConfig of a folder with a `config.json`, or of the file itself."""
    file = path / "config.json" if path.is_dir() else path
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{file} does not exist; give a folder with a config.json") from None
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read ({error.strerror}); give a file") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{file} is not JSON ({error}); download it again") from None
    if not isinstance(raw, dict):
        raise CheckpointError(f"{file} holds no JSON object; download it again")
    return ModelConfig.from_hf(raw, source=str(file))


def _family(raw: Mapping[str, object], source: str) -> Family:
    architectures = raw.get("architectures")
    name = architectures[0] if isinstance(architectures, list) and architectures else None
    if name is None:
        by_type: Mapping[object, Family] = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
        family = by_type.get(raw.get("model_type"))
    else:
        family = _FAMILIES.get(str(name))
    if family is None:
        what = name if name is not None else raw.get("model_type")
        raise CheckpointError(
            f"{source}: architecture {what!r} is not supported; choose a model of "
            + ", ".join(sorted(_FAMILIES))
        )
    return family


def _head_dim(raw: Mapping[str, object], family: Family) -> object:
    if family == "qwen3":
        return 128  # the family's published default, whatever hidden_size / heads is
    hidden, heads = raw.get("hidden_size"), raw.get("num_attention_heads")
    if isinstance(hidden, int) and isinstance(heads, int) and heads > 0:
        return hidden // heads
    return None


def _rope_values(raw: Mapping[str, object], source: str) -> dict[str, object]:
    """`rope_parameters` (newer files) or `rope_theta` + `rope_scaling` (older ones), as one."""
    values: dict[str, object] = {}
    for key in ("rope_scaling", "rope_parameters"):
        part = raw.get(key)
        if isinstance(part, Mapping):
            values.update(part)
        elif part is not None:
            # Read as absent it would rotate by other angles, and no shape would tell.
            raise CheckpointError(f"{source}: {key} is {part!r:.40}; give a mapping or null")
    if "rope_theta" not in values and raw.get("rope_theta") is not None:
        values["rope_theta"] = raw["rope_theta"]
    values.setdefault("rope_type", values.get("type", "default"))
    if values.get("truncate") is None:
        values.pop("truncate", None)
    return values


def _ids(value: object) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,)
    return tuple(value) if isinstance(value, list) else ()


def _refuse_sliding_window(raw: Mapping[str, object], source: str) -> None:
    kinds = raw.get("layer_types")
    windowed = isinstance(kinds, list) and any(kind != "full_attention" for kind in kinds)
    if windowed or raw.get("use_sliding_window"):
        raise CheckpointError(
            f"{source}: sliding-window attention is not supported; "
            "choose a model whose layers all attend to the whole context"
        )
