"""The read that bandwidth is measured by: every word once, or the figure is too good."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are Triton's")

from engine.kernels.read import read_words

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def folded(words: torch.Tensor) -> int:
    found = 0
    for word in words.tolist():
        found ^= word
    return found


@pytest.mark.parametrize("stages", [1, 4])
def test_every_word_is_read(stages: int) -> None:
    generator = torch.Generator().manual_seed(3)
    words = torch.randint(-(2**31), 2**31 - 1, (4 * 192,), dtype=torch.int32, generator=generator)
    out = torch.zeros(4, dtype=torch.int32, device=DEVICE)
    read_words(words.to(DEVICE), out_P=out, block=64, warps=4, stages=stages)
    assert out.tolist() == [folded(part) for part in words.view(4, 192)]


def test_words_that_do_not_divide_are_refused() -> None:
    with pytest.raises(AssertionError, match="100 words in blocks of 2"):
        read_words(
            torch.zeros(100, dtype=torch.int32, device=DEVICE),
            out_P=torch.zeros(2, dtype=torch.int32, device=DEVICE),
            block=64,
            warps=4,
            stages=1,
        )
