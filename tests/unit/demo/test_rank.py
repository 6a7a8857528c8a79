"""The engine that the demo runs: healthy it is lossless, mistaken it is caught at the producer."""

from __future__ import annotations

import pytest

from shapecheck.demo import stage

pytestmark = pytest.mark.skipif(
    bool(stage.missing()), reason="needs the engine's extra: pip install -e '.[engine]'"
)


def test_without_checks_it_crashes_where_two_batches_meet() -> None:
    scene = stage.mistaken("off")
    assert "Expected size 64 but got size 32" in scene.error
    assert scene.stack[0].startswith("_joined (batch.py:")
    assert scene.stack[1].startswith("merge (batch.py:")
    assert not any(frame.startswith("idle ") for frame in scene.stack)


def test_strict_names_the_producer_and_both_dimensions() -> None:
    scene = stage.mistaken("strict")
    heading = scene.error.splitlines()[0]
    assert "SHP201 MistakenProposer.idle (phase idle), return" in heading
    text = " ".join(scene.error.split())
    assert "recurrent_hidden is 32" in text
    assert "64 is target_hidden (hidden_size in the target config)" in text


def test_the_healthy_rank_writes_what_the_target_alone_would() -> None:
    found = stage.healthy()
    assert found.requests == 8
    assert found.same_tokens
    assert 0 < found.contract_seconds < found.iteration_seconds
