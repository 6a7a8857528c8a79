"""Dims of a pair: every name that follows from two configs and an algorithm, with its origin."""

from __future__ import annotations

from shapecheck.dims.config_file import Reading
from shapecheck.dims.model import Dims, Size
from shapecheck.dims.model_config import ModelConfig
from shapecheck.dims.speculation import Speculation
from shapecheck.dims.vocabulary import Owner, lookup

DEFAULT_NUM_AUX = 3
_FALLBACK_DTYPE = "float32"  # what HF loads when a config names none


def derive(target: ModelConfig, draft: ModelConfig | None, spec: Speculation) -> Dims:
    """The Dims of the pair; a size that the pair does not have is None with the reason.

    Nothing is judged here: whether the pair can work is `check_pair`'s question.
    """
    sizes = _model_sizes("target", target, spec.tp)
    if draft is not None:
        sizes |= _model_sizes("draft", draft, spec.draft_tp)
        sizes |= _draft_sizes(draft, spec)
    else:
        sizes |= {
            f"draft_{name}": _absent(f"draft_{name}", f"{spec.algorithm} has no draft model")
            for name in _MODEL_NAMES
        }
    sizes |= _speculation_sizes(target, draft, spec)
    target_dtype = target.dtype or _FALLBACK_DTYPE
    return Dims(
        sizes=sizes,
        target_dtype=target_dtype,
        # A head without a dtype of its own is loaded in its target's.
        draft_dtype=None if draft is None else draft.dtype or target_dtype,
    )


_MODEL_NAMES = ("hidden", "vocab", "layers", "heads", "kv_heads", "head_dim", "ffn")


def _model_sizes(model: str, config: ModelConfig, tp: int) -> dict[str, Size]:
    readings = {
        "hidden": _whole(f"{model}_hidden", config.hidden),
        "vocab": _whole(f"{model}_vocab", config.vocab),
        "layers": _whole(f"{model}_layers", config.layers),
        "heads": _share(f"{model}_heads", config.heads, tp, "heads"),
        "kv_heads": _kv_share(f"{model}_kv_heads", config, tp),
        "head_dim": _whole(f"{model}_head_dim", config.head_dim, config.no_heads),
        "ffn": _share(
            f"{model}_ffn", config.ffn, tp, "columns", f"no intermediate_size in {config.label}"
        ),
    }
    return {f"{model}_{name}": size for name, size in readings.items()}


def _draft_sizes(draft: ModelConfig, spec: Speculation) -> dict[str, Size]:
    sizes: dict[str, Size] = {}
    if draft.draft_vocab is not None and spec.algorithm != "standalone":
        sizes["draft_vocab"] = _whole("draft_vocab", draft.draft_vocab)
    if spec.algorithm == "mtp" and draft.nextn_layers is not None:
        sizes["draft_layers"] = _whole("draft_layers", draft.nextn_layers)
    return sizes


def _speculation_sizes(
    target: ModelConfig, draft: ModelConfig | None, spec: Speculation
) -> dict[str, Size]:
    steps, width = spec.num_steps, spec.num_draft_tokens
    if spec.algorithm == "ngram":
        accept = _size("accept_width", width, f"num_draft_tokens = {width}")
    else:
        accept = _size("accept_width", steps + 1, f"num_steps+1 = {steps}+1")
    num_aux = _num_aux(draft, spec)
    return {
        "num_steps": _size("num_steps", steps, "argument num_steps"),
        "topk": _size("topk", spec.topk, "argument topk"),
        "num_draft_tokens": _size("num_draft_tokens", width, spec.verify_origin),
        "accept_width": accept,
        "num_aux": num_aux,
        "extend_hidden": _extend_hidden(target, num_aux, spec),
        "recurrent_hidden": _recurrent_hidden(draft, spec),
        "max_context": _whole(
            "max_context",
            target.max_positions,
            f"no max_position_embeddings in {target.label}",
        ),
    }


def _num_aux(draft: ModelConfig | None, spec: Speculation) -> Size:
    if spec.algorithm != "eagle3":
        return _absent("num_aux", f"{spec.algorithm} reads no auxiliary layers of the target")
    if spec.num_aux is not None:
        return _size("num_aux", spec.num_aux, "argument num_aux")
    if draft is not None and draft.num_aux is not None:
        return _whole("num_aux", draft.num_aux)
    return _size("num_aux", DEFAULT_NUM_AUX, "default of EAGLE-3")


def _extend_hidden(target: ModelConfig, num_aux: Size, spec: Speculation) -> Size:
    width = target.hidden.value
    if not spec.feeds_hidden:
        return _absent(
            "extend_hidden", f"{spec.algorithm} feeds no target hidden states to a draft"
        )
    if num_aux.value is None:
        return _size("extend_hidden", width, f"target_hidden = {width}")
    return _size(
        "extend_hidden", num_aux.value * width, f"num_aux*target_hidden = {num_aux.value}*{width}"
    )


def _recurrent_hidden(draft: ModelConfig | None, spec: Speculation) -> Size:
    if draft is None or not spec.feeds_hidden:
        return _absent(
            "recurrent_hidden", f"{spec.algorithm} carries no hidden states through its draft loop"
        )
    return _size("recurrent_hidden", draft.hidden.value, f"draft_hidden = {draft.hidden.value}")


def _kv_share(name: str, config: ModelConfig, tp: int) -> Size:
    heads = config.kv_heads
    if heads is not None and tp > heads.value and tp % heads.value == 0:
        return _size(
            name, 1, f"{heads.value} key/value heads replicated over tp={tp} ({heads.origin})"
        )
    return _share(name, heads, tp, "key/value heads", config.no_heads)


def _share(name: str, reading: Reading | None, tp: int, unit: str, absent: str = "") -> Size:
    if reading is None or tp == 1:
        return _whole(name, reading, absent)
    if reading.value % tp:
        return _absent(
            name, f"{reading.value} {unit} do not divide among tp={tp} ({reading.origin})"
        )
    return _size(
        name, reading.value // tp, f"{reading.key}/tp = {reading.value}/{tp} ({reading.origin})"
    )


def _whole(name: str, reading: Reading | None, absent: str = "") -> Size:
    if reading is None:
        return _absent(name, absent)
    return _size(name, reading.value, reading.origin)


def _size(name: str, value: int | None, origin: str) -> Size:
    declared = lookup(name)
    return Size(value=value, owner=declared.owner if declared else Owner.BATCH, origin=origin)


def _absent(name: str, reason: str) -> Size:
    return _size(name, None, reason)
