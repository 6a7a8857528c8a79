"""path: what commit gathers, and the table it reorders, are the reference's."""

from dataclasses import fields

import pytest
import torch
from torch import Tensor

from engine import tree
from engine.kernels.path import keep_path
from engine.tree import KeptPath


def case(
    rows: int, width: int, depth: int, hidden: int | None, *, device: str, kind: torch.dtype
) -> dict[str, Tensor | None]:
    """Random paths: ascending nodes behind the root, as many as fit."""
    generator = torch.Generator().manual_seed(width)
    index = torch.full((rows, depth), -1)
    lens = torch.zeros(rows, dtype=torch.int32)
    for row in range(rows):
        most = min(width, depth) - 1
        count = int(torch.randint(most + 1, (1,), generator=generator))
        nodes = (torch.randperm(width - 1, generator=generator)[:count] + 1).sort().values
        index[row, 0], index[row, 1 : count + 1], lens[row] = 0, nodes, count + 1
    starts = torch.randint(0, 30, (rows,), generator=generator)
    slots = (torch.randperm(rows * width, generator=generator) + 1).view(rows, width)
    states = None
    if hidden is not None:
        # A stride of its own, as if rows were cut out of a wider buffer.
        states = torch.randn(rows, width, hidden + 3, generator=generator).to(device, kind)
        states = states[:, :, :hidden]
    return {
        "req_rows_index": torch.arange(1, rows + 1, device=device),
        "seq_lens": starts.to(device),
        "slots": slots.to(device),
        "predict": torch.randint(99, (rows, width), generator=generator).to(device),
        "accept_index": index.to(device),
        "accept_lens": lens.to(device),
        "hidden_states": states,
    }


def compare(inputs: dict[str, Tensor | None], *, rows: int, shift: int, device: str) -> KeptPath:
    """The kernel's path, which is the reference's, as are all entries of the table."""
    table = torch.arange((rows + 1) * 100, device=device).view(rows + 1, 100) + 10_000
    tables = table.clone(), table.clone()
    found = keep_path(tables[0], **inputs, shift=shift)
    wanted = tree.keep_path(tables[1], **inputs, shift=shift)
    assert torch.equal(*tables)
    for field in fields(KeptPath):
        result, reference = getattr(found, field.name), getattr(wanted, field.name)
        if reference is None:
            assert result is None
        else:
            assert result.dtype == reference.dtype, field.name
            assert torch.equal(result, reference), field.name
    return found


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("hidden", [None, 72])
@pytest.mark.parametrize(("width", "depth"), [(1, 1), (5, 5), (8, 4), (4, 6)])
def test_paths(
    width: int, depth: int, hidden: int | None, shift: int, device: str, dtype: torch.dtype
) -> None:
    inputs = case(3, width, depth, hidden, device=device, kind=dtype)
    found = compare(inputs, rows=3, shift=shift, device=device)
    assert found.emitted.shape == (3, depth)


def test_no_requests(device: str, dtype: torch.dtype) -> None:
    inputs = case(0, 4, 3, 16, device=device, kind=dtype)
    assert compare(inputs, rows=0, shift=1, device=device).emitted.shape == (0, 3)


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 8, 32])
@pytest.mark.parametrize(("width", "depth"), [(5, 5), (16, 4), (60, 5)])
def test_real_sizes(rows: int, width: int, depth: int) -> None:
    inputs = case(rows, width, depth, 3 * 4096, device="cuda", kind=torch.bfloat16)
    found = compare(inputs, rows=rows, shift=1, device="cuda")
    assert found.hidden_states is not None
