"""EagleConfig: a draft head's own sizes, and those it expects of its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from engine.errors import WidthError
from engine.models.config import ModelConfig

Version = Literal["eagle", "eagle3"]


class EagleConfig(ModelConfig):
    """`vocab` is the table the head embeds (the target's), `draft_vocab` what it scores."""

    version: Version
    draft_vocab: int = Field(gt=0)
    target_hidden: int = Field(gt=0)
    aux_layers: tuple[int, ...] = ()
    norm_output: bool = False
    fc_bias: bool = False

    @property
    def num_aux(self) -> int:
        """How many target layers the head reads; 1 for EAGLE-1, which reads the last hidden."""
        return len(self.aux_layers) or 1

    @property
    def extend_width(self) -> int:
        """Width of the target hidden states the head is fed."""
        return self.num_aux * self.target_hidden


def eagle_config(
    raw: Mapping[str, object], target: ModelConfig, *, version: Version, source: str
) -> EagleConfig:
    """The head's config; CheckpointError when it was made for another target.

    Without layer ids an EAGLE-3 head reads the inputs of layers 2, n//2 and n-3 of its target.
    """
    base = ModelConfig.from_hf(raw, source=source)
    nested = raw.get("eagle_config")
    options = nested if isinstance(nested, Mapping) else {}
    listed = options.get(_AUX_KEY, raw.get(_AUX_KEY))
    aux_layers: tuple[int, ...] = ()
    if version == "eagle3":
        aux_layers = tuple(listed) if isinstance(listed, list) else _default_aux(target)
        _check_aux(aux_layers, target, source)
    values = {name: getattr(base, name) for name in ModelConfig.model_fields}
    config = EagleConfig(
        **values,
        version=version,
        draft_vocab=_whole(raw, "draft_vocab_size", base.vocab, source),
        target_hidden=_whole(raw, "target_hidden_size", base.hidden, source),
        aux_layers=aux_layers,
        norm_output=bool(options.get("norm_output", raw.get("norm_output", False))),
        fc_bias=bool(raw.get("bias", False)),
    )
    _check_pair(config, target)
    return config


_AUX_KEY = "eagle_aux_hidden_state_layer_ids"


def _whole(raw: Mapping[str, object], key: str, default: int, source: str) -> int:
    value = raw.get(key)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise WidthError.of(
            f"{source}: {key} is {value!r}; set it to a whole number above 0",
            expected=key,
            found=value,
        )
    return value


def _default_aux(target: ModelConfig) -> tuple[int, ...]:
    return (2, target.layers // 2, target.layers - 3)


def _check_aux(aux_layers: tuple[int, ...], target: ModelConfig, source: str) -> None:
    if not all(0 <= layer < target.layers for layer in aux_layers):
        raise WidthError.of(
            f"{source}: the head reads the inputs of target layers {list(aux_layers)}, and "
            f"{target.source} has {target.layers} layers; set {_AUX_KEY} to layers it has",
            expected=f"layers below target_layers={target.layers}",
            found=list(aux_layers),
        )


def _check_pair(config: EagleConfig, target: ModelConfig) -> None:
    wanted = {"vocab_size": (config.vocab, target.vocab)}
    wanted["target_hidden_size"] = (config.target_hidden, target.hidden)
    if config.version == "eagle":
        # Its recurrent hidden states replace the target's, in the same product.
        wanted["hidden_size"] = (config.hidden, target.hidden)
        wanted["draft_vocab_size"] = (config.draft_vocab, target.vocab)
    for key, (mine, theirs) in wanted.items():
        if mine != theirs:
            raise WidthError.of(
                f"{config.source}: {key} is {mine}, and the target of {target.source} has "
                f"{theirs}; use the head that was trained for this target",
                expected=theirs,
                found=mine,
            )
