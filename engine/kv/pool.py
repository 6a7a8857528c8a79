"""KVPool: the keys and values of one model, one row per slot and layer.

Z slots, pad slot 0 included   C key/value heads   E head width   T rows written
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.models.config import ModelConfig


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
            torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.layers)
        ]
        self.values_ZCE = [torch.zeros_like(keys) for keys in self.keys_ZCE]

    @property
    def num_slots(self) -> int:
        """Rows of every tensor, the pad slot included."""
        return self.keys_ZCE[0].shape[0]

    @property
    def device(self) -> torch.device:
        """Where the pool lives."""
        return self.keys_ZCE[0].device

    def store(self, layer: int, slots_T: Tensor, k_TCE: Tensor, v_TCE: Tensor) -> None:
        """Row t of k and v is what slot slots_T[t] holds in this layer."""
        self.keys_ZCE[layer].index_copy_(0, slots_T, k_TCE)
        self.values_ZCE[layer].index_copy_(0, slots_T, v_TCE)
