"""The miniature is a real worker: lossless when healthy, and caught at the producer when not."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from shapecheck import Dims  # noqa: E402
from shapecheck.demo import rank, stage  # noqa: E402
from shapecheck.demo.worker import DraftWorker, TargetWorker, arrive, iterate  # noqa: E402


@pytest.fixture
def dims() -> Dims:
    return rank.read_dims()


def test_every_iteration_writes_what_the_target_alone_would(dims: Dims) -> None:
    torch.manual_seed(0)
    target, draft = TargetWorker(dims), DraftWorker(dims)
    with torch.inference_mode():
        batch = arrive(target, draft, requests=5)
        hidden, token = batch.hidden_states, batch.bonus_tokens
        alone = []
        for _ in range(24):
            hidden, logits = target.model.forward(token, hidden)
            token = logits.argmax(-1)
            alone.append(token)
        expected = torch.stack(alone, dim=1).tolist()
        written: list[list[int]] = [[] for _ in range(5)]
        for _ in range(6):
            verified = iterate(target, draft, batch)
            for row, tokens in enumerate(written):
                tokens += verified.predict[row, : verified.accept_lens[row]].tolist()
            batch = verified.next_input
    for tokens, wanted in zip(written, expected, strict=True):
        assert len(tokens) >= 6
        assert tokens == wanted[: len(tokens)]


def test_without_checks_it_crashes_where_two_batches_meet() -> None:
    scene = stage.serve("off", "mistaken")
    assert "Expected size 32 but got size 64" in scene.error
    assert scene.stack[0].startswith("merge (worker.py:")
    assert not any("idle_input" in frame for frame in scene.stack)


def test_strict_names_the_producer_and_both_dimensions() -> None:
    scene = stage.serve("strict", "mistaken")
    heading = scene.error.splitlines()[0]
    assert "SHP201 MistakenDraftWorker.idle_input (phase draft_extend), return" in heading
    text = " ".join(scene.error.split())
    assert "target_hidden is 64 (hidden_size in target/config.json)" in text
    assert "32 is draft_hidden (hidden_size in draft/config.json)" in text


@pytest.mark.parametrize("level", ["off", "strict", "full"])
def test_the_healthy_rank_runs(level: str) -> None:
    scene = stage.serve(level, "healthy")
    assert (scene.error, scene.stack) == ("", ())


def test_the_cost_is_measured_at_both_levels() -> None:
    cost = stage.cost()
    assert cost.off > 0
    assert cost.strict > 0
