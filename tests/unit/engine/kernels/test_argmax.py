"""argmax against torch's, equal logits and broken ones included."""

import pytest
import torch

from engine.kernels.argmax import BLOCK_V, argmax

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("vocab", [1, 50, BLOCK_V, 2 * BLOCK_V + 3])
def test_largest(vocab: int, device: str) -> None:
    logits = torch.randn(2, 3, vocab, generator=torch.Generator().manual_seed(5)).to(device)
    best = argmax(logits)
    assert best.dtype == torch.int64
    assert torch.equal(best, logits.argmax(dim=-1))
    assert torch.equal(argmax(logits[:, 1:]), logits[:, 1:].argmax(dim=-1)), "a view with gaps"
    assert argmax(logits[:0]).shape == (0, 3)


def test_equal_logits_keep_the_lower_id(device: str) -> None:
    logits = torch.zeros(1, 2 * BLOCK_V, device=device)
    logits[0, [BLOCK_V + 7, 17, 2 * BLOCK_V - 1]] = 3.0
    assert argmax(logits).tolist() == [17]


@pytest.mark.parametrize(
    ("broken", "wanted"),
    [([-INF, -INF], 0), ([0.0, NAN, 3.0], 1), ([NAN, NAN], 0), ([1.0, INF, 2.0], 1)],
)
def test_a_row_of_no_numbers_still_names_a_token(
    broken: list[float], wanted: int, device: str
) -> None:
    logits = torch.tensor([broken], device=device)
    assert argmax(logits).tolist() == logits.argmax(dim=-1).tolist() == [wanted]
