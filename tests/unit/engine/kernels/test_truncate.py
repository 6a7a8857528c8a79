"""truncate: the reference's law, bit for bit, whatever the filters and however many tokens tie."""

import pytest
import torch
from torch import Tensor

from engine import sampling
from engine.kernels import truncate as kernels
from engine.sampling.units import WHOLE, units


def filters(rows: int, *, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Filters alone and together, those that do nothing included, one combination a row."""
    combinations = [
        (0, 1.0, 0.0), (0, 0.4, 0.0), (7, 0.97, 0.03), (2, 1.0, 0.0), (10**6, 1e-4, 0.0),
        (1, 0.97, 1.0), (0, 1.0, 0.03), (3, 0.7, 0.0),
    ]  # fmt: skip
    top_k, top_p, min_p = zip(*combinations[:rows], strict=True) if rows else ((), (), ())
    return (
        torch.tensor(top_k, dtype=torch.int64, device=device),
        torch.tensor(top_p, dtype=torch.float32, device=device),
        torch.tensor(min_p, dtype=torch.float32, device=device),
    )


def assert_same(probs: Tensor, *, device: str) -> None:
    given = filters(len(probs), device=device)
    wanted = sampling.truncate(probs, *given)
    assert torch.equal(kernels.truncate(probs, *given), wanted)
    mass = units(wanted).sum(dim=1).double() / WHOLE
    assert torch.all((mass - 1).abs() < 1e-5)


@pytest.mark.parametrize(
    ("vocab", "peaked"), [(1, 1.0), (5, 1.0), (300, 0.1), (300, 30.0), (4097, 1.0)]
)
def test_laws(vocab: int, peaked: float, device: str) -> None:
    generator = torch.Generator(device).manual_seed(vocab)
    logits = torch.randn(8, vocab, generator=generator, device=device) * peaked
    assert_same(logits.softmax(dim=1), device=device)


@pytest.mark.parametrize("vocab", [6, 4099])
def test_ties_end_by_id(vocab: int, device: str) -> None:
    """Few different probabilities, so that every prefix ends among equal ones."""
    generator = torch.Generator(device).manual_seed(vocab)
    steps = torch.randint(0, 3, (8, vocab), generator=generator, device=device)
    assert_same(steps.float().softmax(dim=1), device=device)
    assert_same(torch.full((8, vocab), 1.0 / vocab, device=device), device=device)


def test_rows_without_mass_keep_nothing(device: str) -> None:
    probs = torch.zeros(8, 5, device=device)
    probs[1::2] = float("nan")
    given = filters(8, device=device)
    assert torch.equal(kernels.truncate(probs, *given), torch.zeros_like(probs))
    assert torch.equal(sampling.truncate(probs, *given), torch.zeros_like(probs))


def test_a_row_that_asks_for_nothing_is_left_as_it_is(device: str) -> None:
    generator = torch.Generator(device).manual_seed(5)
    probs = torch.randn(8, 300, generator=generator, device=device).softmax(dim=1)
    probs[0, 7] = float("nan")
    for of in (kernels.truncate, sampling.truncate):
        law = of(probs, *filters(8, device=device))
        assert torch.equal(law[0].nan_to_num(-1.0), probs[0].nan_to_num(-1.0))
        assert not torch.equal(law[1], probs[1])


def test_impossible_tokens_stay_impossible(device: str) -> None:
    probs = torch.tensor([[0.5, 0.0, 0.25, 0.25]], device=device).repeat(8, 1)
    law = kernels.truncate(probs, *filters(8, device=device))
    assert torch.equal(law, sampling.truncate(probs, *filters(8, device=device)))
    assert not law[:, 1].any()


def test_no_rows(device: str) -> None:
    given = filters(0, device=device)
    assert kernels.truncate(torch.zeros(0, 9, device=device), *given).shape == (0, 9)
