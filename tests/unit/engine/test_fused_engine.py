"""An engine whose attention and narrow forwards are kernels emits the tokens of the plain one."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are Triton's")

from engine.llm import LLM
from engine.models.fused import FusedLM
from engine.sampling import SamplingParams

from .conftest import drafted_by

PROMPT, PARAMS = (5, 6, 7, 8), SamplingParams(max_tokens=2)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("algorithm", "topk", "width"), [("eagle3", 1, 2), ("standalone", 2, 3)])
def test_same_tokens(algorithm: str, topk: int, width: int) -> None:
    def tokens(backend: str) -> tuple[int, ...]:
        llm = LLM(
            "tiny",
            algorithm=algorithm,
            num_steps=1,
            topk=topk,
            num_draft_tokens=width,
            max_context=16,
            max_requests=1,
            graphs=True,
            device=DEVICE,
            backend=backend,
        )
        assert isinstance(llm.engine.pair.target, FusedLM) == (backend == "triton")
        return llm.generate([PROMPT], PARAMS)[0].token_ids

    assert tokens("triton") == tokens("torch")


def test_a_chain_of_several_requests_is_accepted_like_that_of_one() -> None:
    """A draft that is the target is always right, wherever its request stands in the batch."""
    llm = drafted_by(
        "oracle", num_steps=2, max_context=32, max_requests=3, device=DEVICE, backend="triton"
    )
    outputs = llm.generate(
        [PROMPT, PROMPT[1:], PROMPT[2:]],
        SamplingParams(max_tokens=7, temperature=0.0, ignore_eos=True),
    )
    assert [output.metrics.accept_length for output in outputs] == [3.0, 3.0, 3.0]
