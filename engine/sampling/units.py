"""Units: probabilities as whole numbers, whose sums have no rounding and therefore no order.

A running sum of floats depends on the order of its additions, and each device and kernel has its
own: one coin would draw one token on a CPU and now and then its neighbour on a GPU. Whole numbers
add up alike everywhere, so a law IS its units here: tokens are drawn by them, judged by them, and
an exhausted law is one that has none left.

R rows   V vocabulary   U counts units
"""

import torch
from torch import Tensor

WHOLE = 2**61
"""Units of probability 1. A float32 probability above 2**-38 is a whole number of them."""


def units(law: Tensor) -> Tensor:
    """i64 of the same shape: each probability in units, rounded down; NaN counts as 0.

    Rows of a law, whose probabilities sum to about 1, add up without overflow.
    """
    return (torch.where(law > 0, law.double(), 0.0).clamp(max=1.0) * WHOLE).long()
