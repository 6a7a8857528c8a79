"""Drawing a token from a law with a given coin.

R rows   V vocabulary   U counts units
"""

import torch
from torch import Tensor

from engine.sampling.units import units


def argmax(logits: Tensor) -> Tensor:
    """The ids i64 (...,) of the largest logits (..., V)."""
    return logits.argmax(dim=-1)


def draw(law_RV: Tensor, coins_R: Tensor) -> Tensor:
    """The token (R,) i64 at which the cumulated law first exceeds coin times its sum.

    Coins are f64 in [0, 1). The law's rows sum to 1 or less, in any float type; a token of
    probability 0 is never drawn. A row without any (padding, NaN) gives the last token.
    """
    return draw_units(units(law_RV), coins_R)


def draw_units(law_RU: Tensor, coins_R: Tensor) -> Tensor:
    """`draw` from a law in units: the same token on every device."""
    cumulated_RU = law_RU.cumsum(dim=-1)
    total_R = cumulated_RU[:, -1]
    # The product of a coin near 1 may round up to the sum itself, which nothing exceeds.
    threshold_R = torch.minimum((coins_R * total_R).long(), total_R - 1).clamp(min=0)
    token_R1 = torch.searchsorted(cumulated_RU, threshold_R.unsqueeze(-1), right=True)
    return token_R1.squeeze(-1).clamp(max=law_RU.shape[-1] - 1)
