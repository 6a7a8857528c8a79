"""Memory taken once: what a host cannot hold is refused before it is handed out."""

from __future__ import annotations

import pytest
import torch

import engine.kv.allocate
from engine.errors import EngineError
from engine.kv.allocate import zeros


def test_more_than_the_host_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the allocation itself would succeed, as on a host that overcommits."""
    monkeypatch.setattr(engine.kv.allocate, "_host_memory", lambda: 1000)
    assert zeros((125,), dtype=torch.int64, device="cpu", what="a table").shape == (125,)
    with pytest.raises(EngineError, match=r"a table of shape \(126,\) .* lower max_requests"):
        zeros((126,), dtype=torch.int64, device="cpu", what="a table")
