"""The step bench: its byte counts, its peers and its refusal to run without a GPU."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="the bench times Triton kernels")

from tests.bench import gpu_step
from tests.bench.attention_peers import ATTENTION
from tests.bench.fused_step import FusedStep
from tests.bench.peer_steps import PeerStep
from tests.bench.shapes import LLAMA_1B, LLAMA_8B, Shape, random_weights

TINY = Shape(
    name="tiny", layers=2, hidden=64, heads=4, kv_heads=2, head_width=32, ffn=96, vocab=100
)


def test_bytes_of_a_step() -> None:
    weights = 32 * (4096 * (6144 + 4096) + 3 * 4096 * 14336) + 128256 * 4096
    cache = 32 * 2 * 1024 * 8 * 128
    assert LLAMA_8B.step_bytes(1024) == 2 * (weights + cache)
    assert LLAMA_1B.step_bytes(0) == 2 * (16 * (2048 * 5120 + 3 * 2048 * 8192) + 128256 * 2048)


@pytest.mark.parametrize("rows", [1, 3])
def test_plain_peer_is_the_same_forward(rows: int) -> None:
    torch.manual_seed(9)
    weights = random_weights(TINY, device="cpu", dtype=torch.float32)
    step = FusedStep(TINY, weights, tokens=rows, context=70)
    wanted = step.reference()
    peer = PeerStep.of(step)
    for name in ("sdpa", "products"):
        peer.attend = ATTENTION[name]
        assert gpu_step.relative_error(peer.plain(), wanted) < 1e-6
    # One graph without a break, for all layers: what Inductor makes of it needs a device.
    torch._dynamo.utils.counters.clear()
    compiled = peer.compiled({}, backend="aot_eager")
    assert gpu_step.relative_error(compiled(), wanted) < 1e-6
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["gpu_step"])
    with pytest.raises(SystemExit):
        gpu_step.main()
    assert "no CUDA device" in capsys.readouterr().err
