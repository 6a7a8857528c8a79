"""The filtered law of each request, alone and beside others, against plain Python."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.sampling import BatchControls, SamplingParams, sampling_law
from engine.sampling.params import MIN_TOP_P

CPU = torch.device("cpu")


def law_of(logits: list[float], **params: object) -> list[float]:
    controls = BatchControls.of([SamplingParams(**params)], [0], device=CPU)
    return sampling_law(torch.tensor([[logits]]), controls)[0, 0].tolist()


def plain_law(logits: list[float], params: SamplingParams) -> list[float]:
    """Filters one after the other over (token, probability), best first."""
    if params.is_greedy:
        return [float(i == logits.index(max(logits))) for i in range(len(logits))]
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    weight = {i: math.exp((logits[i] - max(logits)) / params.temperature) for i in order}
    kept = order[: params.top_k or None]
    total, before, crossing = sum(weight[i] for i in kept), 0.0, []
    for token in kept:
        if before / total < params.top_p or params.top_p == 1:
            crossing.append(token)
        before += weight[token]
    kept = [i for i in crossing if weight[i] >= params.min_p * weight[crossing[0]]]
    total = sum(weight[i] for i in kept)
    return [weight[i] / total if i in kept else 0.0 for i in range(len(logits))]


request_params = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 1.7]),
    top_k=st.integers(0, 8),
    top_p=st.sampled_from([0.05, 0.33, 0.71, 0.97, 1.0]),
    min_p=st.sampled_from([0.0, 0.013, 0.21, 1.0]),
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(request_params, min_size=1, max_size=4), st.integers(0, 10_000))
def test_agrees_with_plain_python(params, seed):
    logits = torch.randn(len(params), 2, 7, generator=torch.Generator().manual_seed(seed)) * 2
    controls = BatchControls.of(params, range(len(params)), device=CPU)
    law = sampling_law(logits, controls)
    assert law.dtype == torch.float32
    for b, one in enumerate(params):
        for n in range(2):
            wanted = torch.tensor(plain_law(logits[b, n].tolist(), one))
            assert torch.allclose(law[b, n], wanted, atol=2e-6)
            assert torch.equal(law[b, n] > 0, wanted > 0)
        # The same request alone has the same law, bit for bit.
        alone = BatchControls.of([one], [0], device=CPU)
        assert torch.equal(sampling_law(logits[b : b + 1], alone)[0], law[b])


def test_ties_are_cut_in_favour_of_the_lower_id():
    assert law_of([1.0, 2.0, 2.0, 2.0], top_k=2) == [0.0, 0.5, 0.5, 0.0]
    assert law_of([2.0, 2.0], temperature=0.0) == [1.0, 0.0]


def test_top_p_keeps_the_token_that_crosses_the_mass():
    logits = [math.log(p) for p in (0.5, 0.25, 0.125, 0.125)]
    assert law_of(logits, top_p=0.5) == pytest.approx([1.0, 0, 0, 0])
    assert law_of(logits, top_p=0.51) == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert law_of(logits, top_p=MIN_TOP_P) == pytest.approx([1.0, 0, 0, 0])


def test_a_low_temperature_and_impossible_tokens_make_no_nan():
    law = law_of([100.0, -math.inf, 99.0], temperature=1e-5, top_k=3, top_p=0.9)
    assert law == [1.0, 0.0, 0.0]
    assert law_of([0.0, -math.inf, 0.0], temperature=2.0) == [0.5, 0.0, 0.5]


def test_top_p_of_one_keeps_the_tail():
    logits = torch.full((1, 1, 50_000), 0.0)
    params = [SamplingParams(top_p=1.0, top_k=50_000)]
    law = sampling_law(logits, BatchControls.of(params, [0], device=CPU))
    assert int((law > 0).sum()) == 50_000
