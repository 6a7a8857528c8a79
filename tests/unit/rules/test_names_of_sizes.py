"""The two names of a finding: what was found, and what belongs in its place."""

from __future__ import annotations

from pathlib import Path

from shapecheck.static.report import run

BUFFER = """
import torch

class Runner:
    def __init__(self, draft_config, rows: int):
        self.hidden = torch.zeros((rows, 3 * draft_config.hidden_size))

    def replay(self, batch, target_model, target_config):
        self.hidden.copy_({source})
"""
IDLE = """
from dataclasses import dataclass

import torch

@dataclass
class Carrier:
    hidden_states: torch.Tensor

class Worker:
    def step(self, batch, target_model, draft_config):
        batch.carrier = Carrier(target_model.forward(batch).hidden_states)
        if batch.finished:
            width = (
                draft_config.hidden_size * 3
                if batch.many_layers
                else draft_config.hidden_size
            )
            batch.carrier = Carrier(torch.empty((0, width)))
        return batch.carrier.hidden_states
"""
ARMS = """
import torch

class Runner:
    def replay(self, batch, num_draft_tokens: int):
        most = max(batch.counts)
        max_batch_size = (
            most // num_draft_tokens if batch.is_eagle() or batch.is_tree() else most
        )
        return torch.zeros(max_batch_size, batch.hidden_size)
"""


def _names(folder: Path, text: str) -> list[tuple[int, str, str, str]]:
    (folder / "example.py").write_text(text, encoding="utf-8")
    return [
        (one.primary.line, one.code, one.dims.found, one.dims.expected)
        for one in run((str(folder),)).findings
        if one.primary and one.dims
    ]


def test_a_name_does_not_say_the_multiple(tmp_path: Path) -> None:
    text = BUFFER.format(source="target_model.forward(batch).hidden_states")
    assert _names(tmp_path, text) == [(6, "SHP301", "3*draft_hidden", "3*target_hidden")]


def test_a_size_read_from_a_config_is_exact(tmp_path: Path) -> None:
    text = BUFFER.format(source="torch.ones((4, target_config.hidden_size))")
    assert _names(tmp_path, text) == [(6, "SHP301", "3*draft_hidden", "target_hidden")]


def test_every_read_of_one_argument_is_a_cause_of_its_own(tmp_path: Path) -> None:
    assert _names(tmp_path, IDLE) == [
        (15, "SHP201", "3*draft_hidden", "3*target_hidden"),
        (17, "SHP201", "draft_hidden", "target_hidden"),
    ]


def test_arms_name_the_count_that_they_are_given_to(tmp_path: Path) -> None:
    assert _names(tmp_path, ARMS) == [(8, "SHP303", "most", "max_batch_size")]
