"""draw and draw_children: the reference's tokens, from the same coins."""

import pytest
import torch
from torch import Tensor

from engine import sampling
from engine.kernels import draw as kernels

LAST_COIN = 1 - 2.0**-53


def laws(rows: int, vocab: int, *, peaked: float, device: str) -> tuple[Tensor, Tensor]:
    """Logits of which many are impossible, and their softmax."""
    generator = torch.Generator(device).manual_seed(vocab)
    logits = torch.randn(rows, vocab, generator=generator, device=device) * peaked
    cut = torch.rand(rows, vocab, generator=generator, device=device) < 0.4
    cut[:, -1] = False
    logits = logits.masked_fill(cut, -torch.inf)
    return logits, logits.softmax(dim=1)


def edge_coins(rows: int, draws: int, *, device: str) -> Tensor:
    """Both ends of the unit interval in the first rows, uniform coins in the others."""
    generator = torch.Generator(device).manual_seed(draws)
    coins = torch.rand(rows, draws, generator=generator, dtype=torch.float64, device=device)
    coins[0], coins[1], coins[2] = 0.0, 1 - 2.0**-24, LAST_COIN
    return coins


@pytest.mark.parametrize("vocab", [5, 4096, 4097])
def test_one_token(vocab: int, device: str) -> None:
    _, law = laws(5, vocab, peaked=1.0, device=device)
    coins = edge_coins(5, 1, device=device).squeeze(1)
    assert torch.equal(kernels.draw(law, coins), sampling.draw(law, coins))
    wide = law.double() / 3
    assert torch.equal(kernels.draw(wide, coins), sampling.draw(wide, coins))


@pytest.mark.parametrize("vocab", [5, 4097])
def test_rows_without_a_law(vocab: int, device: str) -> None:
    law = torch.zeros(3, vocab, device=device)
    law[1] = float("nan")
    law[2, 1] = 2.0**-70
    coins = torch.tensor([0.0, 0.5, LAST_COIN], dtype=torch.float64, device=device)
    found = kernels.draw(law, coins)
    assert torch.equal(found, sampling.draw(law, coins))
    assert found.tolist() == [vocab - 1] * 3


@pytest.mark.parametrize("peaked", [1.0, 60.0])
@pytest.mark.parametrize(("vocab", "draws"), [(5, 5), (4097, 4)])
def test_children(vocab: int, draws: int, peaked: float, device: str) -> None:
    """A peaked law is exhausted after a child or two: the others are the best that remain."""
    logits, law = laws(5, vocab, peaked=peaked, device=device)
    coins = edge_coins(5, draws, device=device)
    found = kernels.draw_children(law, logits, coins)
    assert torch.equal(found, sampling.draw_children(law, logits, coins))
    assert all(len(set(row)) == draws for row in found.tolist()) or vocab == 5


def test_broken_logits(device: str) -> None:
    logits = torch.zeros(2, 6, device=device)
    logits[0, 2], logits[1] = float("nan"), float("-inf")
    law = logits.softmax(dim=1)
    coins = edge_coins(3, 3, device=device)[:2]
    found = kernels.draw_children(law, logits, coins)
    assert torch.equal(found, sampling.draw_children(law, logits, coins))


def test_no_rows(device: str) -> None:
    none = torch.zeros(0, 9, device=device)
    coins = torch.zeros(0, 2, dtype=torch.float64, device=device)
    assert kernels.draw_children(none, none, coins).shape == (0, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 8, 160])
def test_a_real_vocabulary(rows: int) -> None:
    logits, law = laws(max(rows, 3), 128256, peaked=2.0, device="cuda")
    coins = edge_coins(max(rows, 3), 4, device="cuda")
    wanted = sampling.draw_children(law, logits, coins)
    assert torch.equal(kernels.draw_children(law, logits, coins), wanted)
    one = coins[:, 0].contiguous()
    assert torch.equal(kernels.draw(law, one), sampling.draw(law, one))
    on_cpu = sampling.draw_children(law[:3].cpu(), logits[:3].cpu(), coins[:3].cpu())
    assert torch.equal(wanted[:3].cpu(), on_cpu)
