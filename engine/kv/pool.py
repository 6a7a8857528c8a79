"""KVPool: the keys and values of one model, one row per slot and layer.

Z slots, pad slot 0 included   C key/value heads   E head width   T rows written

Annotations are evaluated, so this module has no `from __future__ import annotations`.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from engine.kv.allocate import zeros
from engine.models.config import ModelConfig
from shapecheck import carrier, dtype


@carrier
@dataclass(slots=True, kw_only=True)
class TargetKV:
    """The target's pool, layer by layer."""

    keys: list[
        Annotated[Float[Tensor, "num_slots target_kv_heads target_head_dim"], dtype("target")]
    ]
    values: list[
        Annotated[Float[Tensor, "num_slots target_kv_heads target_head_dim"], dtype("target")]
    ]


@carrier
@dataclass(slots=True, kw_only=True)
class DraftKV:
    """The draft's pool, layer by layer; it has as many slots as the target's."""

    keys: list[Annotated[Float[Tensor, "num_slots draft_kv_heads draft_head_dim"], dtype("draft")]]
    values: list[
        Annotated[Float[Tensor, "num_slots draft_kv_heads draft_head_dim"], dtype("draft")]
    ]


class KVPool:
    """Two tensors per layer, (Z, C, E). Target and draft each have a pool; slot ids are shared.

    One tensor per layer instead of one for all: a compiled forward that writes into a slice of a
    larger tensor copies all of it. Zeros at first, because padded rows read the pad slot and a
    stray NaN would spread through the softmax.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        num_slots: int,
        dtype: torch.dtype,
        device: torch.device | str,
    ) -> None:
        shape = (num_slots, config.kv_heads, config.head_dim)
        self.keys_ZCE = [
            zeros(shape, dtype=dtype, device=device, what="a layer's keys")
            for _ in range(config.layers)
        ]
        self.values_ZCE = [
            zeros(shape, dtype=dtype, device=device, what="a layer's values")
            for _ in range(config.layers)
        ]

    def as_target(self) -> TargetKV:
        """The same tensors as what the target's phases expect."""
        return TargetKV(keys=self.keys_ZCE, values=self.values_ZCE)

    def as_draft(self) -> DraftKV:
        """The same tensors as what the draft's phases expect."""
        return DraftKV(keys=self.keys_ZCE, values=self.values_ZCE)

    def store(self, layer: int, slots_T: Tensor, k_TCE: Tensor, v_TCE: Tensor) -> None:
        """Row t of k and v is what slot slots_T[t] holds in this layer."""
        self.keys_ZCE[layer].index_copy_(0, slots_T, k_TCE)
        self.values_ZCE[layer].index_copy_(0, slots_T, v_TCE)
