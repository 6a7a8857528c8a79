"""Between host and device: nothing waits, nothing is read early, and the device is the engine's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

import engine
from engine import SamplingParams
from engine.sampling import BatchControls, TokenCounts
from engine.transfer import HostCopy, to_device

from .conftest import slots_add_up, tiny

PARAMS = SamplingParams(max_tokens=6, temperature=0.0, ignore_eos=True)
FOLDER = Path(engine.__file__).parent
# Loading, measuring and taking memory happen before the first turn.
BETWEEN_TURNS = [
    path
    for part in ("kv", "phases", "proposers", "sampling", "scheduler")
    for path in sorted((FOLDER / part).glob("*.py"))
]


def blocking_copies(source: str) -> list[int]:
    """The lines that make a tensor of host values on a device, which waits for the device."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("torch.tensor", "torch.as_tensor")
        and any(keyword.arg == "device" for keyword in node.keywords)
    ]


@pytest.mark.parametrize("path", BETWEEN_TURNS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_host_values_cross_through_transfer_alone(path: Path) -> None:
    assert blocking_copies(path.read_text(encoding="utf-8")) == []


def test_a_blocking_copy_would_be_seen() -> None:
    assert blocking_copies("x = 1\ny = torch.tensor([x], device=d)") == [2]


def test_a_host_copy_on_a_cpu() -> None:
    assert HostCopy(torch.tensor([[1, 2], [3, 4]])).tolist() == [[1, 2], [3, 4]]
    assert to_device(torch.tensor([5, 6]), torch.device("cpu")).tolist() == [5, 6]


def test_a_turn_and_an_abort_run_on_the_device_of_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Streams, events and kernels are those of the current device, whatever the tensors are on."""
    llm = tiny("ngram", max_context=32)
    request = llm.engine.add([1, 2, 3], PARAMS)
    current: list[object] = []

    @contextmanager
    def device(which: object) -> Iterator[None]:
        current.append(which)
        yield

    monkeypatch.setattr(torch.cuda, "device", device)
    llm.engine.turn()
    llm.engine.config = llm.config.model_copy(update={"device": "cuda:1"})
    llm.engine.turn()
    llm.engine.abort(request)
    assert current == [-1, torch.device("cuda:1"), torch.device("cuda:1")]


@pytest.mark.gpu
def test_nothing_waits_for_the_device() -> None:
    device = torch.device("cuda")
    params = [SamplingParams(frequency_penalty=0.3), SamplingParams()]
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            BatchControls.of(params, [1, 2], device=device)
            TokenCounts.of([[1, 2], [3]], [[], [4]], target_vocab=8, device=device)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert to_device(torch.arange(3), device).is_cuda


@pytest.mark.gpu
def test_pinned_memory_is_not_used_again_before_its_copy_is_done() -> None:
    """The host runs far ahead of a busy stream, and drops each source at once."""
    device = torch.device("cuda")
    busy = torch.randn(4096, 4096, device=device)
    arrived, left = [], []
    for number in range(50):
        busy = busy @ busy / 64
        arrived.append(to_device(torch.full((64,), number), device))
        left.append(HostCopy(arrived[-1].view(1, -1) + 1))
    assert [copy.tolist()[0][0] for copy in left] == list(range(1, 51))
    assert [int(values.unique()) for values in arrived] == list(range(50))


@pytest.mark.gpu
@pytest.mark.parametrize("graphs", [False, True], ids=["eager", "replayed"])
def test_a_device_that_is_not_the_current_one(graphs: bool) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    wanted = tiny("standalone").generate("hello", PARAMS)[0].token_ids
    llm = tiny("standalone", device="cuda:1", graphs=graphs)
    assert llm.generate("hello", PARAMS)[0].token_ids == wanted
    assert slots_add_up(llm)
