"""The law of the draws themselves: every step of every coin, found by bisection."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.sampling import BatchControls, SamplingParams, draw, draw_root

LAST_COIN = 1 - 2.0**-53
TOLERANCE = 1e-12
WEIGHTS = st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 7]), min_size=5, max_size=5).filter(any)


def controls(rows: int) -> BatchControls:
    return BatchControls.of([SamplingParams()] * rows, [0] * rows, device=torch.device("cpu"))


def bisect(outcome, problems: int) -> torch.Tensor:
    """The coin below which `outcome(coins)` holds and from which on it does not, per problem."""
    low, high = torch.zeros(problems).double(), torch.ones(problems).double()
    for _ in range(48):
        middle = (low + high) / 2
        holds = outcome(middle)
        low, high = torch.where(holds, middle, low), torch.where(holds, high, middle)
    return (low + high) / 2


@settings(max_examples=25, deadline=None, derandomize=True)
@given(WEIGHTS, st.integers(1, 3))
def test_children_are_drawn_without_replacement(weights, topk):
    """The sampler's own draws, its coins integrated likewise, follow the law that it hands out."""
    logits = torch.tensor([weights]).double().log()
    _, law = draw_root(logits, controls(1), torch.zeros(1, topk).double())
    rest = law.probs[0].double()
    four = controls(4)
    for rank in range(topk):
        if rest.sum() == 0:
            break

        def outcome(coin, rank=rank):
            coins = torch.zeros(4, topk).double()
            coins[:, rank] = coin
            tokens, _ = draw_root(logits.expand(4, 5), four, coins)
            return tokens[:, rank] <= torch.arange(4)

        cumulated = (rest / rest.sum()).cumsum(dim=0)
        assert torch.allclose(bisect(outcome, 4), cumulated[:4], rtol=0, atol=TOLERANCE)
        # Coin 0 draws the first token with weight: go on below that child.
        rest[int(rest.nonzero()[0])] = 0.0


@settings(max_examples=25, deadline=None, derandomize=True)
@given(WEIGHTS)
def test_draw_steps_at_the_cumulated_weights(weights):
    table = (torch.tensor([weights]) / sum(weights)).double().expand(4, 5)
    steps = bisect(lambda coin: draw(table, coin) <= torch.arange(4), 4)
    cumulated = table[0].cumsum(dim=0) / table[0].sum()
    assert torch.allclose(steps, cumulated[:4], rtol=0, atol=TOLERANCE)
    drawn = draw(
        table[:1].expand(3, 5), torch.tensor([0.0, 1 - 2.0**-24, LAST_COIN], dtype=torch.float64)
    )
    assert all(weights[token] > 0 for token in drawn.tolist())
