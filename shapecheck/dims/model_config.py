"""ModelConfig: what Dims needs of one model, read from its HF config."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shapecheck.dims.config_file import (
    ConfigFile,
    Reading,
    Section,
    language_section,
    root_section,
    shown,
    subsection,
)

_DTYPES = ("bfloat16", "float16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
_ALIASES = {"half": "float16", "float": "float32", "double": "float64", "fp16": "float16"}

# Qwen3's class fixes its head width; Llama and Qwen2 divide hidden_size by the heads.
_CLASS_HEAD_DIM = {"qwen3": 128, "qwen3_moe": 128}

# Latent attention caches one compressed row a token, so there are no per-head K and V to size.
_LATENT = "kv_lora_rank"
_NEXTN_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The sizes of one model before tensor parallelism; None where its config has no such key.

    `aux_layers` are the target layers an EAGLE-3 head asks for, `num_aux` how many it reads;
    `target_hidden` is the width the head says its target has; `no_heads` is why `kv_heads` and
    `head_dim` are None.
    """

    file: ConfigFile
    architectures: tuple[str, ...]
    dtype: str | None
    hidden: Reading
    vocab: Reading
    layers: Reading
    heads: Reading
    kv_heads: Reading | None
    head_dim: Reading | None
    no_heads: str
    ffn: Reading | None
    max_positions: Reading | None
    draft_vocab: Reading | None
    target_hidden: Reading | None
    aux_layers: tuple[int, ...]
    num_aux: Reading | None
    nextn_layers: Reading | None

    @property
    def label(self) -> str:
        """What messages call the file."""
        return self.file.label

    def fed_width(self) -> Reading:
        """The width per target layer that the weights of this head read."""
        return self.target_hidden or self.hidden


def model_config(file: ConfigFile) -> ModelConfig:
    """Everything Dims needs of one model; raises ShapecheckError naming file, key and remedy."""
    body, outer = language_section(file), root_section(file)
    hidden, heads = body.required("hidden_size"), body.required("num_attention_heads")
    kv_heads = body.integer("num_key_value_heads") or replace(
        heads, origin=f"{heads.origin}, which has no num_key_value_heads"
    )
    latent = body.integer(_LATENT)
    if not latent and heads.value % kv_heads.value:
        raise file.fault(
            f"{body.prefix}num_key_value_heads is {kv_heads.value}, which {heads.value} attention "
            "heads cannot share evenly",
            f"set it to a number that divides {heads.value}",
        )
    aux_layers, num_aux = _aux(body, outer)
    return ModelConfig(
        file=file,
        architectures=outer.strings("architectures"),
        dtype=_dtype(body) or _dtype(outer),
        hidden=hidden,
        vocab=body.required("vocab_size"),
        layers=body.required("num_hidden_layers"),
        heads=heads,
        kv_heads=None if latent else kv_heads,
        head_dim=None if latent else _head_dim(body, hidden, heads),
        no_heads=f"{latent.origin}: latent attention has no K and V per head" if latent else "",
        ffn=body.integer("intermediate_size"),
        max_positions=body.integer("max_position_embeddings"),
        draft_vocab=_either(body, outer, "draft_vocab_size"),
        target_hidden=_either(body, outer, "target_hidden_size"),
        aux_layers=aux_layers,
        num_aux=num_aux,
        nextn_layers=_nextn(body, outer),
    )


def _either(body: Section, outer: Section, key: str) -> Reading | None:
    return body.integer(key) or outer.integer(key)


def _nextn(body: Section, outer: Section) -> Reading | None:
    for key in _NEXTN_KEYS:
        # Zero layers is how a checkpoint says that its MTP module was left out.
        reading = body.integer(key, low=0) or outer.integer(key, low=0)
        if reading is not None:
            return reading if reading.value else None
    return None


def _head_dim(body: Section, hidden: Reading, heads: Reading) -> Reading:
    given = body.integer("head_dim")
    if given is not None:
        return given
    model_type = body.string("model_type") or ""
    fixed = _CLASS_HEAD_DIM.get(model_type)
    if fixed is not None:
        origin = f"default of {model_type}, {body.file.label} has no head_dim"
        return Reading(value=fixed, key="head_dim", origin=origin)
    if hidden.value % heads.value:
        raise body.file.fault(
            f"hidden_size {hidden.value} does not divide among {heads.value} attention heads",
            "add head_dim, or correct hidden_size or num_attention_heads",
        )
    return Reading(
        value=hidden.value // heads.value,
        key="head_dim",
        origin=f"hidden_size/num_attention_heads = {hidden.value}/{heads.value} "
        f"in {body.file.label}",
    )


def _aux(body: Section, outer: Section) -> tuple[tuple[int, ...], Reading | None]:
    key = "eagle_aux_hidden_state_layer_ids"
    eagle = subsection(outer, "eagle_config")
    for section in (eagle, outer, body):
        layers = section.layer_numbers(key) if section else ()
        if section and layers:
            origin = f"length of {section.where(key)}"
            return layers, Reading(value=len(layers), key=key, origin=origin)
    return (), _either(body, outer, "num_aux_hidden_states")


def _dtype(section: Section) -> str | None:
    for key in ("dtype", "torch_dtype"):
        given = section.string(key)
        if given is None:
            continue
        name = given.removeprefix("torch.")
        name = _ALIASES.get(name, name)
        if name not in _DTYPES:
            raise section.file.fault(
                f"{section.prefix}{key} is {shown(given)}",
                f"set it to one of {', '.join(_DTYPES)}",
            )
        return name
    return None
