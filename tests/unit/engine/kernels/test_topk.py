"""topk_softmax against a stable sort."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from engine.kernels.topk import choose_children, topk_softmax, topk_softmax_reference


@pytest.mark.parametrize(("vocab", "k"), [(50, 1), (5000, 4), (4096, 8), (3, 3)])
def test_candidates(vocab: int, k: int, device: str) -> None:
    logits = torch.randn(3, vocab, generator=torch.Generator().manual_seed(5)).to(device)
    p, index = topk_softmax(logits, k)
    p_ref, index_ref = topk_softmax_reference(logits, k)
    assert torch.equal(index, index_ref)
    torch.testing.assert_close(p, p_ref, rtol=1e-5, atol=0.0)
    assert p.dtype == torch.float32
    assert index.dtype == torch.int64


def test_equal_logits_keep_the_lower_id(device: str) -> None:
    logits = torch.zeros(1, 5000, device=device)
    logits[0, [4999, 17, 2048]] = 3.0
    logits[0, 5] = float("-inf")
    _, index = topk_softmax(logits, 4)
    assert index.tolist() == [[17, 2048, 4999, 0]]


def test_no_rows(device: str) -> None:
    p, index = topk_softmax(torch.zeros(0, 9, device=device), 2)
    assert p.shape == index.shape == (0, 2)


def test_more_candidates_than_tokens(draw: Callable[..., Tensor]) -> None:
    with pytest.raises(AssertionError, match="candidates"):
        topk_softmax(draw(1, 3), 4)


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 8, 256])
def test_children_of_a_real_vocabulary(rows: int) -> None:
    logits = torch.randn(rows, 128256, device="cuda", generator=torch.Generator("cuda"))
    p, index = choose_children(logits, topk=8)
    p_ref, index_ref = topk_softmax_reference(logits, 8)
    assert torch.equal(index, index_ref)
    torch.testing.assert_close(p, p_ref, rtol=1e-5, atol=0.0)
