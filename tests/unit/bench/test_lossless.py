"""The bench of losslessness: a parting is a tie or it is none, and a tiny pair never parts."""

from __future__ import annotations

import pytest

from engine.models.seeded import tiny_config
from engine.scheduler.request import TokenLogprob
from tests.bench.lossless import compare, run


def output(*steps: tuple[int, float, float]) -> list[TokenLogprob]:
    """Each step: its token, its log-probability, that of the best other token."""
    return [
        TokenLogprob(token=token, logprob=best, top=((token, best), (token + 1, second)))
        for token, best, second in steps
    ]


def test_runs_that_agree() -> None:
    one = output((3, -0.5, -2.0), (4, -0.1, -3.0))
    verdict = compare([one], [one])
    assert (verdict.tokens, verdict.partings, verdict.noise) == (2, (), 0.0)


@pytest.mark.parametrize(("second", "is_tie"), [(-0.69, True), (-0.71, False)])
def test_a_parting_is_a_tie_below_the_noise_of_two_tokens(second: float, is_tie: bool) -> None:
    plain = output((3, -0.5, -2.0), (4, -0.5, second), (5, -0.2, -1.0))
    drafted = output((3, -0.4, -2.0), (5, -0.5, -0.6), (9, -0.2, -1.0))
    verdict = compare([plain], [drafted])
    assert verdict.noise == pytest.approx(0.1)
    assert [(one.position, one.is_tie) for one in verdict.partings] == [(1, is_tie)]
    assert verdict.is_lossless is is_tie


def test_a_tiny_model_that_drafts_for_itself() -> None:
    verdict = run(
        tiny_config(hidden=32),
        device="cpu",
        dtype="float32",
        requests=2,
        context=5,
        tokens=12,
        invariant=False,
    )
    assert verdict.is_lossless
    assert verdict.tokens == 24
