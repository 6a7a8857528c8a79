"""An engine whose attention and narrow forwards are kernels emits the tokens of the plain one."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are Triton's")

import engine.engine
from engine.attention.triton_paged import TritonBackend
from engine.llm import LLM
from engine.models.fused import FusedLM
from engine.models.registry import MODELS
from engine.sampling import SamplingParams

PROMPT, PARAMS = (5, 6, 7, 8), SamplingParams(max_tokens=2)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("algorithm", "topk", "width"), [("eagle3", 1, 2), ("standalone", 2, 3)])
def test_same_tokens(
    algorithm: str, topk: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tokens() -> tuple[int, ...]:
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
        )
        return llm.generate([PROMPT], PARAMS)[0].token_ids

    plain = tokens()
    for family in MODELS:
        monkeypatch.setitem(MODELS, family, FusedLM)  # type: ignore[arg-type]  # a dict inside
    monkeypatch.setattr(engine.engine, "SdpaBackend", TritonBackend)
    assert tokens() == plain
