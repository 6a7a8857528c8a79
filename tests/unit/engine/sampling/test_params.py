"""SamplingParams refuses what makes no sense, and the text says what to do."""

import math

import pytest
import torch

from engine.errors import EngineError
from engine.sampling import BatchControls, SamplingParams


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("temperature", -0.1, "use 0 for greedy"),
        ("temperature", math.nan, "use 0 for greedy"),
        ("temperature", math.inf, "use 0 for greedy"),
        ("temperature", 1e-7, "use 0 for greedy"),
        ("temperature", "hot", "give a number"),
        ("temperature", True, "give a number"),
        ("top_k", -1, "use 0 to keep the whole vocabulary"),
        ("top_k", 2.5, "give an integer"),
        ("top_k", True, "give an integer"),
        ("top_p", 0.0, "use temperature=0"),
        ("top_p", 1.5, "use 1 to keep the whole vocabulary"),
        ("min_p", -0.1, "use 0 to keep the whole vocabulary"),
        ("repetition_penalty", 0.0, "use 1 for no penalty"),
        ("presence_penalty", math.nan, "use 0 for no penalty"),
        ("frequency_penalty", None, "give a number"),
        ("seed", -1, "63-bit"),
        ("seed", 2**63, "63-bit"),
        ("max_tokens", 0, "at least one token"),
        ("max_tokens", None, "give an integer"),
        ("logprobs", -1, "None for no logprobs"),
        ("stop", "\n", "give a tuple of strings"),
        ("stop", ("a", ""), "leave the empty string out"),
        ("stop", ("a", 3), "give a tuple of strings"),
        ("stop_token_ids", (3, -1), "each 0 or more"),
        ("stop_token_ids", [3], "give a tuple of token ids"),
    ],
)
def test_refused(name, value, remedy):
    with pytest.raises(EngineError, match=remedy) as caught:
        SamplingParams(**{name: value})
    assert f"{name}={value!r}" in str(caught.value)


def test_edges_are_allowed():
    params = SamplingParams(
        temperature=0, top_k=0, top_p=1, min_p=1, seed=2**63 - 1, max_tokens=1, logprobs=0
    )
    assert params.is_greedy
    assert params.truncates
    assert not params.penalises
    assert SamplingParams(seed=None, presence_penalty=-0.5).penalises


def test_controls_keep_rows_and_flags():
    params = [
        SamplingParams(temperature=0.0, top_k=5),
        SamplingParams(temperature=0.5, frequency_penalty=0.25),
    ]
    controls = BatchControls.of(params, [7, 2**62], device=torch.device("cpu"))
    assert controls.temperature.tolist() == [0.0, 0.5]
    assert controls.seeds.tolist() == [7, 2**62]
    assert (controls.all_greedy, controls.truncates, controls.penalises) == (False, False, True)
    greedy = BatchControls.of(params[:1], [7], device=torch.device("cpu"))
    assert greedy.all_greedy
    idle = BatchControls.of([], [], device=torch.device("cpu"))
    assert idle.temperature.shape == (0,)
    assert idle.temperature.dtype == controls.temperature.dtype
    assert idle.seeds.dtype == torch.int64
