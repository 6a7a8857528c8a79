"""Drawing a token from weights with a given coin.

R rows   V vocabulary
"""

import torch
from torch import Tensor


def draw(weights_RV: Tensor, coins_R: Tensor) -> Tensor:
    """The token (R,) i64 at which the cumulated weights first exceed coin times their sum.

    Coins are f64 in [0, 1), weights floats >= 0 of any scale; a token of weight 0 is never drawn.
    A row without weight (padding) or with NaN gives the last token.
    """
    # float64: in float32 the running sum of a large vocabulary swallows its tail.
    cumulated_RV = weights_RV.double().cumsum(dim=-1)
    threshold_R1 = coins_R.unsqueeze(-1) * cumulated_RV[:, -1:]
    token_R1 = torch.searchsorted(cumulated_RV, threshold_R1, right=True)
    return token_R1.squeeze(-1).clamp(max=weights_RV.shape[-1] - 1)
