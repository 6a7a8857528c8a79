"""mask_words against torch, at the width of a word and with no rows."""

import pytest
import torch

from engine.kernels.mask_words import mask_words, mask_words_reference


def test_words_hold_the_mask(device: str) -> None:
    mask = torch.tensor([[[True, False, True], [False, False, False]]], device=device)
    assert mask_words(mask).tolist() == mask_words_reference(mask).tolist() == [5, 0]
    full = torch.ones(1, 1, 64, dtype=torch.bool, device=device)
    assert mask_words(full).tolist() == mask_words_reference(full).tolist() == [-1]
    generator = torch.Generator().manual_seed(7)
    many = (torch.rand(9, 7, 13, generator=generator) < 0.5).to(device)
    assert torch.equal(mask_words(many), mask_words_reference(many))
    assert mask_words(many[:0]).shape == (0,)
    for words in (mask_words, mask_words_reference):
        with pytest.raises(AssertionError, match="64 bits"):
            words(torch.ones(1, 1, 65, dtype=torch.bool, device=device))
