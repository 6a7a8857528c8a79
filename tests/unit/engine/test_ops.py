"""TreeOps: chosen once from the device, and a whole engine emits the same tokens with either."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
import torch

from engine.backend import Backend
from engine.config import EngineConfig
from engine.llm import LLM
from engine.ops import TreeOps
from engine.sampling import SamplingParams

PROMPT = (5, 6, 7, 8)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the kernels are Triton's"
)


def test_a_cpu_runs_torch_and_never_imports_the_kernels() -> None:
    assert Backend.of(EngineConfig.of(target="tiny")).ops() == TreeOps.torch()
    seen = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\n"
            "from engine import LLM\n"
            "LLM('tiny', max_context=16)\n"
            "print([name for name in sys.modules if name.startswith('engine.kernels')])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout.strip() == "[]"


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "kernels"), [("bfloat16", True), ("float32", False)])
def test_a_gpu_runs_the_kernels(dtype: str, kernels: bool) -> None:
    backend = Backend.of(EngineConfig.of(target="tiny", device="cuda", dtype=dtype))
    assert backend.ops() == (TreeOps.triton() if kernels else TreeOps.torch())


@needs_triton
@pytest.mark.parametrize("drafting", ["best", "drawn"])
@pytest.mark.parametrize(("algorithm", "topk", "width"), [("eagle3", 1, 3), ("standalone", 2, 4)])
def test_same_tokens(
    algorithm: str, topk: int, width: int, drafting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One batch of a sampled and a greedy request."""
    params = SamplingParams(max_tokens=3, temperature=0.8, seed=4, ignore_eos=True)

    def tokens(ops: TreeOps) -> list[tuple[int, ...]]:
        monkeypatch.setattr(Backend, "ops", lambda self: ops)
        llm = LLM(
            "tiny",
            algorithm=algorithm,
            drafting=drafting,
            num_steps=2,
            topk=topk,
            num_draft_tokens=width,
            max_context=24,
            max_requests=2,
            device=DEVICE,
        )
        greedy = SamplingParams(max_tokens=3, temperature=0.0, ignore_eos=True)
        return [one.token_ids for one in llm.generate([PROMPT, PROMPT[1:]], [params, greedy])]

    assert tokens(TreeOps.triton()) == tokens(TreeOps.torch())
