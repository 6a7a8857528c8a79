"""The bench of the small operations: each compares like with like, and it needs a GPU to time."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="the bench times Triton kernels")

from engine.bench.replay import capture
from engine.ops import TreeOps
from tests.bench import tree_ops

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("shape", [(1, 2, 3), (2, 2, 4)], ids=str)
def test_both_kinds_give_the_same(shape: tuple[int, int, int]) -> None:
    found = tree_ops.cases(shape, 2, vocab=11, hidden=8, device=DEVICE)
    for name, op in found.items():
        assert tree_ops.same(op(TreeOps.torch()), op(TreeOps.triton())), name
    assert len(found) == 11


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("rows", [1, 8, 32])
@pytest.mark.parametrize("shape", tree_ops.SHAPES, ids=str)
def test_a_graph_gives_what_torch_gives(shape: tuple[int, int, int], rows: int) -> None:
    """Capture refuses whatever asks the device; a second replay finds nothing of the first."""
    found = tree_ops.cases(shape, rows, vocab=tree_ops.VOCAB, hidden=4096, device="cuda")
    for name, op in found.items():
        kept: list[object] = []
        graph = capture(lambda op=op, kept=kept: kept.append(op(TreeOps.triton())))
        graph.replay()
        graph.replay()
        torch.cuda.synchronize()
        assert tree_ops.same(op(TreeOps.torch()), kept[-1]), name


def test_unequal_results_are_told() -> None:
    assert not tree_ops.same(torch.zeros(2), torch.ones(2))
    first = tree_ops.first_level(torch.zeros(1, 2), torch.zeros(1, 2).long())[1]
    assert tree_ops.same(first, first)
    assert not tree_ops.same(first, tree_ops.replace(first, tokens=first.tokens + 1))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["tree_ops"])
    with pytest.raises(SystemExit):
        tree_ops.main()
    assert "no CUDA device" in capsys.readouterr().err
