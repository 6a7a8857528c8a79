"""What a mutant changes is measured: sizes of operations, and the bits of what crosses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
COMPARE = """
import json
import torch
from shapecheck import contract
from jaxtyping import Float32, Int64
from torch import Tensor
from tests.mutation.crossings import Crossings, overheard
from tests.mutation.load import _Shapes
from tests.mutation.tiers import _changes

@contract
def crossed(rows: Float32[Tensor, "bs"], lens: Int64[Tensor, "bs"]) -> Float32[Tensor, "bs"]:
    return rows * scale

def run(inside, sent=1.0):
    global scale
    scale = torch.tensor(1.0, dtype=inside)
    shapes, crossings = _Shapes(), Crossings()
    with overheard(crossings), shapes:
        crossed(torch.full((3,), sent), torch.zeros(3, dtype=torch.int64)).sum()
    return shapes.counts(), crossings.digest()

one, two, three = run(torch.float32), run(torch.float16), run(torch.float32, sent=2.0)
fewer = {name: count for name, count in list(one[0].items())[1:]}
print(json.dumps({
    "another dtype inside": _changes(two[0], one[0], "done"),
    "same bits cross": one[1] == two[1],
    "other bits cross": one[1] != three[1],
    "other values alone": _changes(three[0], one[0], "done"),
    "left out": _changes(fewer, one[0], "done"),
    "left out by a crash": _changes(fewer, one[0], "RuntimeError"),
}))
"""


def test_sizes_and_bits_are_told_apart() -> None:
    run = subprocess.run(
        [sys.executable, "-c", COMPARE], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert json.loads(run.stdout) == {
        "another dtype inside": True,
        "same bits cross": True,
        "other bits cross": True,
        "other values alone": False,
        "left out": False,
        "left out by a crash": True,
    }
