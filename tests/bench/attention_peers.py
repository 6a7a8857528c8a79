"""attention_peers: what torch offers to a few rows over a long contiguous cache.

T tokens   Q query heads   C key/value heads   E head width   X columns of the cache
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

# (Q, T, E), (C, X, E), (C, X, E), and the mask (T, X) of what each row sees -> (Q, T, E).
Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def sdpa(query: Tensor, keys: Tensor, values: Tensor, seen_TX: Tensor) -> Tensor:
    """Whatever backend torch chooses; a mask rules out its fastest one."""
    return F.scaled_dot_product_attention(
        query[None],
        keys[None],
        values[None],
        attn_mask=seen_TX if len(seen_TX) > 1 else None,
        enable_gqa=True,
    )[0]


def flash(query: Tensor, keys: Tensor, values: Tensor, seen_TX: Tensor) -> Tensor:
    """Flash attention's own causal mask, whose last row sees all: no mask is read. CUDA, bf16."""
    return torch.ops.aten._scaled_dot_product_flash_attention(
        query[None], keys[None], values[None], 0.0, True, False
    )[0][0]


def products(query: Tensor, keys: Tensor, values: Tensor, seen_TX: Tensor) -> Tensor:
    """Two batched products around a softmax; the query heads of a group are rows of one."""
    heads, tokens, width = query.shape
    grouped = query.reshape(len(keys), -1, width)
    scores = (grouped @ keys.transpose(1, 2)).float() * width**-0.5
    scores = scores.view(len(keys), -1, tokens, keys.shape[1])
    weights = scores.masked_fill(~seen_TX, float("-inf")).softmax(dim=-1).to(values.dtype)
    return (weights.flatten(1, 2) @ values).view(heads, tokens, width)


ATTENTION: Mapping[str, Attend] = {"sdpa": sdpa, "flash": flash, "products": products}
