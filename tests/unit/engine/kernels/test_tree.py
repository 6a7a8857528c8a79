"""tree, level and accept: the references' trees, paths and ties, and the golden ones."""

import json
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine import tree
from engine.errors import EngineError
from engine.kernels.accept import accept_greedy
from engine.kernels.level import next_level
from engine.kernels.tree import build_tree
from engine.tree import BuiltTree, Frontier, Level, first_level

DATA = next(p for p in Path(__file__).parents if p.name == "tests") / "data" / "golden_tree.json"
SETTINGS = json.loads(DATA.read_text())
SHAPES = [(1, 1, 2), (1, 4, 5), (2, 3, 11), (3, 3, 8), (4, 1, 5), (8, 4, 60)]
"""Branching, depth and verify width."""


def name(setting: dict[str, object]) -> str:
    return "-".join(f"{key}{setting[key]}" for key in ("B", "K", "S", "N"))


def assert_same(found: object, wanted: object) -> None:
    """Every tensor of two dataclasses, bit for bit."""
    assert type(found) is type(wanted)
    for field in fields(wanted):  # type: ignore[arg-type]
        result, reference = getattr(found, field.name), getattr(wanted, field.name)
        if isinstance(reference, Tensor):
            assert result.dtype == reference.dtype, field.name
            assert torch.equal(result, reference), field.name
        elif reference is not None:
            assert_same(result, reference)


def grown(topk: int, num_steps: int, *, rows: int, seed: int, device: str) -> list[Level]:
    """Levels whose probabilities tie often and are at times no probabilities."""
    generator = torch.Generator().manual_seed(seed)
    odd = torch.tensor([1.0, 0.5, 0.5, 0.25, 0.0, float("nan"), 3.0, float("-inf")])

    def some(*sizes: int) -> tuple[Tensor, Tensor]:
        at = torch.randint(len(odd), sizes, generator=generator)
        smooth = torch.rand(sizes, generator=generator)
        probs = torch.where(torch.rand(sizes, generator=generator) < 0.5, odd[at], smooth)
        return probs.to(device), torch.randint(9, sizes, generator=generator).to(device)

    level, frontier = first_level(*some(rows, topk))
    levels = [level]
    for step in range(1, num_steps):
        probs, tokens = some(rows * topk, topk)
        wanted = tree.next_level(frontier, probs, tokens, step=step)
        level, frontier = next_level(frontier, probs, tokens, step=step)
        assert_same(level, wanted[0])
        assert_same(frontier, wanted[1])
        levels.append(level)
    return levels


def compare(topk: int, num_steps: int, width: int, *, rows: int, device: str) -> BuiltTree:
    """Levels, the tree and a walk down it, each the reference's."""
    levels = grown(topk, num_steps, rows=rows, seed=width, device=device)
    bonus, lens = torch.arange(rows, device=device), torch.arange(rows, device=device) * 7
    sizes = {"topk": topk, "num_draft_tokens": width, "drawn": True}
    found = build_tree(levels, bonus, lens, **sizes)
    assert_same(found, tree.build_tree(levels, bonus, lens, **sizes))
    generator = torch.Generator().manual_seed(width)
    choice = torch.randint(9, (rows, width), generator=generator).to(device)
    # Often the target agrees with some child, so that paths get long.
    child = found.structure.next_child.clamp(min=0)
    agrees = (torch.rand(rows, width, generator=generator) < 0.7).to(device)
    choice = torch.where(agrees, found.draft_tokens.gather(1, child), choice)
    inputs = (found.draft_tokens, choice, found.structure.tree_mask)
    accepted = accept_greedy(*inputs, accept_width=num_steps + 1)
    assert_same(accepted, tree.accept_greedy(*inputs, accept_width=num_steps + 1))
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_trees(shape: tuple[int, int, int], device: str) -> None:
    topk, num_steps, width = shape
    found = compare(topk, num_steps, width, rows=3, device=device)
    assert found.structure.tree_mask.shape == (3, width, width)


def test_no_requests(device: str) -> None:
    found = compare(2, 3, 6, rows=0, device=device)
    assert found.draft_tokens.shape == (0, 6)


def test_laws_are_named_for_drawn_children_only(device: str) -> None:
    levels = grown(2, 2, rows=1, seed=0, device=device)
    bonus = torch.zeros(1, dtype=torch.int64, device=device)
    found = build_tree(levels, bonus, bonus, topk=2, num_draft_tokens=4, drawn=False)
    assert found.law_columns is None


def test_too_few_candidates_says_what_to_change(device: str) -> None:
    levels = grown(2, 1, rows=1, seed=0, device=device)
    bonus = torch.zeros(1, dtype=torch.int64, device=device)
    with pytest.raises(EngineError, match=r"offer 2 candidates; set num_draft_tokens to 3"):
        build_tree(levels, bonus, bonus, topk=2, num_draft_tokens=4, drawn=False)


@pytest.fixture(params=SETTINGS, ids=name)
def setting(request: pytest.FixtureRequest) -> dict[str, object]:
    return request.param


def test_golden_structure(setting, device: str) -> None:
    """The candidates that the golden tree chose score one, all others nothing."""
    rows, topk, steps, width = (setting[key] for key in ("B", "K", "S", "N"))
    index = torch.tensor(setting["top_scores_index"], device=device)
    count = topk + (steps - 1) * topk * topk
    scores = torch.zeros(rows, count, device=device).scatter(1, index, 1.0)
    tokens = torch.zeros(rows, count, dtype=torch.int64, device=device)
    tokens.scatter_(1, index, torch.tensor(setting["draft_tokens"], device=device))
    parents = torch.tensor(setting["parent_list"], dtype=torch.int64, device=device).view(rows, -1)
    none = torch.zeros(rows, topk, dtype=torch.int64, device=device)
    levels = []
    for step in range(steps):
        first = 0 if step == 0 else topk + (step - 1) * topk * topk
        last = topk if step == 0 else first + topk * topk
        opened = slice(0, topk + 1) if step == 0 else slice(1 + step * topk, 1 + (step + 1) * topk)
        levels.append(
            Level(
                scores=scores[:, first:last],
                tokens=tokens[:, first:last],
                parents=parents[:, opened] if parents[:, opened].shape[1] else none,
            )
        )
    if steps == 1:
        levels[0] = Level(
            scores=scores, tokens=tokens, parents=torch.cat([none[:, :1] - 1, none], dim=1)
        )
    found = build_tree(
        levels,
        torch.tensor([row[0] for row in setting["candidates"]], device=device),
        torch.tensor(setting["seq_lens"], device=device),
        topk=topk,
        num_draft_tokens=width,
        drawn=False,
    )
    assert found.draft_tokens.tolist() == setting["candidates"]
    assert found.structure.tree_mask.int().tolist() == setting["ancestors"]
    assert found.structure.positions.tolist() == setting["positions"]
    assert found.structure.next_child.tolist() == setting["retrieve_next_token"]
    assert found.structure.next_sibling.tolist() == setting["retrieve_next_sibling"]


def test_golden_acceptance(setting, device: str) -> None:
    width, accept_width = setting["N"], len(setting["accept_index"][0])
    accepted = accept_greedy(
        torch.tensor(setting["candidates"], device=device),
        torch.tensor(setting["target_predict"], device=device),
        torch.tensor(setting["ancestors"], dtype=torch.bool, device=device),
        accept_width=accept_width,
    )
    starts = torch.arange(setting["B"], device=device).unsqueeze(1) * width
    global_index = torch.where(accepted.accept_index < 0, -1, accepted.accept_index + starts)
    assert global_index.tolist() == setting["accept_index"]
    assert accepted.predict.flatten().tolist() == setting["predict"]
    assert (accepted.accept_lens - 1).tolist() == setting["num_correct_drafts"]


def test_a_frontier_of_ties_keeps_its_order(device: str) -> None:
    frontier = Frontier(
        tokens=torch.tensor([[4, 5]], device=device),
        scores=torch.ones(1, 2, device=device),
        parent_rows=torch.arange(2, device=device),
    )
    tokens = torch.arange(4, device=device).view(2, 2)
    level, chosen = next_level(frontier, torch.ones(2, 2, device=device), tokens, step=2)
    assert level.parents.tolist() == [[6, 7]]
    assert chosen.tokens.tolist() == [[0, 1]]
    assert chosen.parent_rows.tolist() == [0, 0]


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 8, 32])
@pytest.mark.parametrize("shape", [(1, 4, 5), (4, 3, 16), (8, 5, 60), (10, 6, 64)], ids=str)
def test_real_sizes(shape: tuple[int, int, int], rows: int) -> None:
    topk, num_steps, width = shape
    found = compare(topk, num_steps, width, rows=rows, device="cuda")
    assert found.draft_tokens.shape == (rows, width)
