"""SHP304 of a field whose dtype a contract promises: what meets it is to be changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapecheck.static.report import run

FIELDS = """
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from shapecheck import carrier, dtype
from torch import Tensor

@carrier
@dataclass
class State:
    hidden: Annotated[Float[Tensor, "bs target_hidden"], dtype("target")]
    drafted: Annotated[Float[Tensor, "bs target_hidden"], dtype("draft")]

class Worker:
    def fill(self, draft_config, state: State, rows: int, width: int):
        mine = torch.zeros((rows, width), dtype=draft_config.dtype)
        {line}
"""
# What meets: where it is reported, and whether the promise is all there is to change.
MEETINGS = {
    "into the field": ("state.hidden.copy_(mine)", 18, False),
    "out of the field": ("mine.copy_(state.hidden)", 18, False),
    "two fields": ("state.hidden.copy_(state.drafted)", 19, True),
}


@pytest.mark.parametrize("name", MEETINGS)
def test_the_advice_fits_a_promised_dtype(name: str, tmp_path: Path) -> None:
    line, where, both = MEETINGS[name]
    (tmp_path / "example.py").write_text(FIELDS.replace("{line}", line), encoding="utf-8")
    (finding,) = run((str(tmp_path),)).findings
    notes = {note.label: note for note in finding.notes}
    assert (finding.code, finding.primary and finding.primary.line) == ("SHP304", where)
    assert notes["why target"].span is not None
    assert notes["why target"].span.line == 13
    advice = notes["settle it"].message
    assert "cast in words" in advice
    assert ("take the dtype from" in advice) is not both
    assert "draft's config" not in advice


def test_a_buffer_beside_no_promise_takes_the_other_models_dtype(tmp_path: Path) -> None:
    text = """
import torch

def fill(draft_config, target_model, batch, rows: int, width: int):
    buffer = torch.zeros((rows, width), dtype=draft_config.dtype)
    buffer.copy_(target_model.forward(batch).hidden_states)
"""
    (tmp_path / "example.py").write_text(text, encoding="utf-8")
    (finding,) = run((str(tmp_path),)).findings
    assert finding.notes[-1].message == "take the dtype from the target's config"
