"""prefill_attention against float64, over ragged batches with and without a prefix."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from engine.kernels.prefill_attention import prefill_attention, prefill_attention_reference


@pytest.mark.parametrize("heads", [4, 6])
@pytest.mark.parametrize(
    ("prefixes", "extends"), [([0], [70]), ([0, 65, 3], [1, 40, 0]), ([100, 0], [3, 33])]
)
def test_ragged_rows(
    heads: int,
    prefixes: list[int],
    extends: list[int],
    device: str,
    draw: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    generator = torch.Generator().manual_seed(4)
    batch, slots, width = len(prefixes), 300, 32
    starts = torch.tensor([0, *torch.tensor(extends).cumsum(0).tolist()])
    keys, values = draw(slots, 2, width), draw(slots, 2, width)
    q = draw(sum(extends), heads, width)
    plan = {
        "table_PM": torch.randint(1, slots, (batch + 1, 160), generator=generator).to(device),
        "row_B": torch.arange(1, batch + 1, device=device),
        "prefix_B": torch.tensor(prefixes, device=device),
        "start_B1": starts.to(device),
    }
    out = prefill_attention(q, keys, values, **plan, longest=max(extends))
    reference = prefill_attention_reference(q.double(), keys.double(), values.double(), **plan)
    assert_close(out, reference)


def test_no_rows(device: str, draw: Callable[..., Tensor]) -> None:
    empty = torch.zeros(0, dtype=torch.int64, device=device)
    out = prefill_attention(
        draw(0, 4, 32), draw(5, 2, 32), draw(5, 2, 32),
        table_PM=torch.zeros(1, 8, dtype=torch.int64, device=device), row_B=empty, prefix_B=empty,
        start_B1=torch.zeros(1, dtype=torch.int64, device=device), longest=0,
    )  # fmt: skip
    assert out.shape == (0, 4, 32)
