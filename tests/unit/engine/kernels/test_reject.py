"""reject: with the same coins the reference's path and tokens, along trees and along chains."""

from dataclasses import fields, replace

import pytest
import torch

from engine.kernels import units
from engine.kernels.reject import accept_tree
from engine.sampling import rejection
from engine.tree import Accepted
from tests.unit.engine.drawn import DrawnBatch, drawn_batch

HOT = [0, 1, 3, 4, 7, 8, 10, 11]
SHAPES = [(1, 3, 4), (2, 2, 6), (3, 3, 12)]


def assert_same(found: Accepted, wanted: Accepted) -> None:
    """Every field, bit for bit."""
    for field in fields(Accepted):
        result, reference = getattr(found, field.name), getattr(wanted, field.name)
        assert result.dtype == reference.dtype
        assert torch.equal(result, reference), field.name


def compare(batch: DrawnBatch, *, chain: bool) -> Accepted:
    """The kernel's verdict, which is the reference's."""
    found = batch.along_links(accept_tree)
    assert_same(found, batch.along_links(rejection.accept_tree))
    if chain:
        assert_same(found, batch.along_chain(rejection.accept_chain))
    return found


@pytest.mark.parametrize("hot", [None, HOT], ids=["whole", "hot"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_edge_coins_foreign_candidates_and_padding(
    shape: tuple[int, int, int], hot: list[int] | None, device: str
) -> None:
    topk, num_steps, width = shape
    batch = drawn_batch(
        topk=topk, num_steps=num_steps, width=width, rows=7, target_vocab=12, hot=hot, padded=1,
        seed=2,
    ).on(device)  # fmt: skip
    lens = set(compare(batch, chain=topk == 1).accept_lens.tolist())
    assert len(lens) > 1


@pytest.mark.parametrize(("topk", "hot"), [(1, None), (3, HOT)])
def test_a_vocabulary_of_several_chunks(
    topk: int, hot: list[int] | None, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "WIDEST", 4)
    batch = drawn_batch(
        topk=topk, num_steps=2, width=3 if topk == 1 else 6, rows=8, target_vocab=13, hot=hot,
        device=device,
    )  # fmt: skip
    assert len(compare(batch, chain=topk == 1).accept_lens) == 8


@pytest.mark.parametrize("topk", [1, 3])
def test_disjoint_supports(topk: int, device: str) -> None:
    """Every drawn child is refused, and the token comes from the target's whole law."""
    batch = drawn_batch(
        topk=topk, num_steps=1, width=topk + 1, rows=6, target_vocab=10, hot=[0, 1, 2, 3],
        device=device,
    )  # fmt: skip
    target = torch.zeros_like(batch.target)
    target[..., 5:] = 0.2
    tokens = batch.tokens.clamp(max=3)
    found = compare(replace(batch, target=target, tokens=tokens), chain=topk == 1)
    assert found.accept_lens.tolist() == [1] * 6
    assert bool((found.predict[:, 0] >= 5).all())


@pytest.mark.parametrize("topk", [1, 3])
def test_equal_laws(topk: int, device: str) -> None:
    """p = q takes the first child whatever its coin; siblings of one token are passed over."""
    batch = drawn_batch(
        topk=topk, num_steps=1, width=topk + 1, rows=6, target_vocab=8, device=device
    )
    law = torch.full_like(batch.law.probs, 1 / 8)
    equal = replace(
        batch,
        target=law,
        law=batch.law.mapped(lambda _: law),
        tokens=torch.full_like(batch.tokens, 5),
    )
    equal.law.probs.fill_(1 / 8)
    equal.target.fill_(1 / 8)
    found = compare(equal, chain=topk == 1)
    assert found.accept_lens.tolist() == [2] * 6


def test_what_rounding_leaves_is_not_a_law(device: str) -> None:
    """Refused although both laws agree: nothing is left to draw from, so the target's law stays."""
    batch = drawn_batch(topk=2, num_steps=1, width=3, rows=2, target_vocab=4, device=device)
    batch.law.probs.zero_()
    target = torch.zeros_like(batch.target)
    target[..., 1] = 1.0
    tokens = torch.ones_like(batch.tokens)
    coins = torch.full_like(batch.accept, 1.0)
    found = compare(replace(batch, target=target, tokens=tokens, accept=coins), chain=False)
    assert found.predict[:, 0].tolist() == [1, 1]


@pytest.mark.parametrize("rows", [0, 3])
def test_no_draft_and_no_request(rows: int, device: str) -> None:
    batch = drawn_batch(topk=1, num_steps=1, width=2, rows=3, target_vocab=7, device=device)
    links = replace(
        batch.structure,
        tree_mask=batch.structure.tree_mask[:rows, :1, :1],
        positions=batch.structure.positions[:rows, :1],
        next_child=torch.full((rows, 1), -1, device=device),
        next_sibling=torch.full((rows, 1), -1, device=device),
    )
    kept = torch.arange(rows, device=device)
    law = batch.law.rows(kept)
    object.__setattr__(law, "probs", law.probs[:, :1])
    root = replace(
        batch, target=batch.target[:rows, :1], tokens=batch.tokens[:rows, :1], law=law,
        structure=links, accept=batch.accept[:rows, :1], final=batch.final[:rows],
    )  # fmt: skip
    assert compare(root, chain=True).accept_lens.tolist() == [1] * rows


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 8, 32])
@pytest.mark.parametrize("shape", [(1, 4, 5), (4, 3, 16), (8, 4, 60)], ids=str)
def test_a_real_vocabulary(shape: tuple[int, int, int], rows: int) -> None:
    topk, num_steps, width = shape
    batch = drawn_batch(
        topk=topk, num_steps=num_steps, width=width, rows=rows, target_vocab=128256, seed=rows,
        device="cuda",
    )  # fmt: skip
    assert len(compare(batch, chain=topk == 1).accept_lens) == rows


@pytest.mark.gpu
def test_in_a_graph() -> None:
    batch = drawn_batch(topk=3, num_steps=3, width=16, rows=8, target_vocab=32000, device="cuda")
    batch.along_links(accept_tree)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = batch.along_links(accept_tree)
    for seed in (1, 2):
        other = drawn_batch(
            topk=3, num_steps=3, width=16, rows=8, target_vocab=32000, seed=seed, device="cuda"
        )
        batch.target.copy_(other.target)
        batch.accept.copy_(other.accept)
        batch.final.copy_(other.final)
        graph.replay()
        assert_same(found, batch.along_links(rejection.accept_tree))
