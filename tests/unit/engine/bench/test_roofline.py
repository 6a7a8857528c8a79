"""The fewest bytes and operations, against sums made by hand."""

from __future__ import annotations

import pytest

from engine.bench.card import Card
from engine.bench.roofline import Shape, Work, forward_work, iteration_forwards, ridge_rows
from engine.models.published import PUBLISHED

TARGET, DRAFT = PUBLISHED["llama-8b"], PUBLISHED["llama-1b"]
CARD = Card(name="paper", bandwidth=4e12, rate=8e14)


def at(requests: int, width: int) -> Shape:
    return Shape(requests=requests, num_draft_tokens=width, context=1024, itemsize=2)


def test_a_step_of_the_target() -> None:
    matrices = 32 * (4096 * (6144 + 4096) + 3 * 4096 * 14336)
    head, cache = 128256 * 4096, 32 * 2 * 1024 * 8 * 128
    work = forward_work(TARGET, at(1, 1), rows=1, logits=1)
    assert work.bytes == 2 * (matrices + head + cache)
    assert work.flops == 2 * (matrices + head) + 32 * 4 * 1024 * 32 * 128


def test_more_rows_cost_operations_and_no_bytes() -> None:
    one, six = (forward_work(TARGET, at(1, rows), rows=rows, logits=rows) for rows in (1, 6))
    assert six.bytes == one.bytes
    assert six.flops == 6 * one.flops


def test_an_iteration_is_its_forwards() -> None:
    """N = 5: verify, an extend of five rows of which one is read, and three steps."""
    shape = at(8, 5)
    work = iteration_forwards(TARGET, DRAFT, shape)
    parts = [forward_work(TARGET, shape, rows=40, logits=40)]
    parts.append(forward_work(DRAFT, shape, rows=40, logits=8))
    parts += 3 * [forward_work(DRAFT, shape, rows=8, logits=8)]
    assert list(work) == parts
    assert iteration_forwards(TARGET, None, shape) == (parts[0],)


def test_the_limits_of_a_card() -> None:
    assert Work(bytes=4e9, flops=8e12).limits_ms(CARD) == (pytest.approx(1), pytest.approx(10))
    assert CARD.ridge == 200
    # Two bytes and two operations a weight: about as many rows as operations a byte.
    assert 180 < ridge_rows(TARGET, at(1, 1), CARD) < 200
