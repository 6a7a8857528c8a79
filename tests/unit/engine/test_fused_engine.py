"""An engine whose attention and narrow forwards are kernels emits the tokens of the plain one."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are Triton's")

from engine.llm import LLM
from engine.models.fused import FusedLM
from engine.sampling import SamplingParams

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
