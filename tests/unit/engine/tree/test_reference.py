"""Tree functions against plain Python that keeps the tree as paths, not as tables."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.tree import (
    accept_greedy,
    build_structure,
    chain_structure,
    first_level,
    law_columns,
    next_level,
    rank_scores,
    select_nodes,
)

VOCAB = 6


@dataclass
class Node:
    """One candidate: `path` are the ranks taken from the root, unique in its tree."""

    path: tuple[int, ...]
    token: int
    score: float
    flat: int


def grow(steps: list[tuple[list[list[float]], list[list[int]]]], topk: int) -> list[Node]:
    """Every candidate of one request; a step is (probs, tokens), a row per frontier node."""
    nodes: list[Node] = []
    frontier = [Node((), -1, 1.0, -1)]
    for probs, tokens in steps:
        level: list[Node] = []
        for parent, prob_row, token_row in zip(frontier, probs, tokens, strict=True):
            for rank in range(topk):
                path = (*parent.path, rank)
                flat = len(nodes) + len(level)
                level.append(Node(path, token_row[rank], parent.score * prob_row[rank], flat))
        # All children of the root are expanded, so they keep the order they were proposed in.
        best = level if not nodes else sorted(level, key=lambda node: (-node.score, node.flat))
        frontier = best[:topk]
        nodes += level
    return nodes


def choose(nodes: list[Node], count: int) -> list[Node]:
    best = sorted(nodes, key=lambda node: (-node.score, node.flat))[:count]
    return sorted(best, key=lambda node: node.flat)


def walk(tokens: list[int], predict: list[int], paths: list[tuple[int, ...]]) -> list[int]:
    """The greedy path: at every node descend to the first child that holds the target's token."""
    taken = [0]
    while True:
        here = paths[taken[-1]]
        children = [
            j for j, path in enumerate(paths) if path[:-1] == here and len(path) == len(here) + 1
        ]
        match = [j for j in children if tokens[j] == predict[taken[-1]]]
        if not match:
            return taken
        taken.append(match[0])


# Powers of two make every product exact, and 1.0 makes a child tie with its parent.
probabilities = st.sampled_from([1.0, 0.5, 0.5, 0.25, 0.125, 0.0])


@st.composite
def drafts(draw):
    bs, topk, num_steps = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    candidates = topk + (num_steps - 1) * topk * topk
    width = draw(st.integers(2, min(candidates, 12) + 1))
    requests = []
    for _ in range(bs):
        steps = []
        for step in range(num_steps):
            rows = 1 if step == 0 else topk
            row = st.lists(probabilities, min_size=topk, max_size=topk)
            token = st.lists(st.integers(0, VOCAB - 1), min_size=topk, max_size=topk)
            steps.append(
                (
                    draw(st.lists(row, min_size=rows, max_size=rows)),
                    draw(st.lists(token, min_size=rows, max_size=rows)),
                )
            )
        requests.append(steps)
    predict = draw(
        st.lists(
            st.lists(st.integers(0, VOCAB - 1), min_size=width, max_size=width),
            min_size=bs,
            max_size=bs,
        )
    )
    return topk, num_steps, width, requests, predict


def run(topk, num_steps, width, requests):
    """The vectorised build over the whole batch."""
    stacked = [
        (
            torch.tensor([request[step][0] for request in requests]),
            torch.tensor([request[step][1] for request in requests]),
        )
        for step in range(num_steps)
    ]
    level, frontier = first_level(stacked[0][0][:, 0], stacked[0][1][:, 0])
    levels, frontiers = [level], [frontier]
    for step in range(1, num_steps):
        probs, tokens = (part.flatten(0, 1) for part in stacked[step])
        level, frontier = next_level(frontier, probs, tokens, step=step)
        levels.append(level)
        frontiers.append(frontier)
    bonus = torch.arange(len(requests)) % VOCAB
    return select_nodes(levels, bonus, num_draft_tokens=width), frontiers


@settings(max_examples=150, deadline=None, derandomize=True)
@given(drafts())
def test_build_and_accept_agree_with_plain_python(draft):
    topk, num_steps, width, requests, predict = draft
    selected, _ = run(topk, num_steps, width, requests)
    seq_lens = torch.arange(len(requests)) * 7 + 1
    structure = build_structure(
        selected.parent_list, selected.top_scores_index, seq_lens, topk=topk
    )
    accepted = accept_greedy(
        selected.draft_tokens,
        torch.tensor(predict),
        structure.tree_mask,
        accept_width=num_steps + 1,
    )
    for b, request in enumerate(requests):
        chosen = choose(grow(request, topk), width - 1)
        paths = [(), *(node.path for node in chosen)]
        tokens = [b % VOCAB, *(node.token for node in chosen)]
        assert selected.top_scores_index[b].tolist() == [node.flat for node in chosen]
        assert selected.draft_tokens[b].tolist() == tokens
        assert structure.positions[b].tolist() == [int(seq_lens[b]) + len(path) for path in paths]
        assert structure.tree_mask[b].tolist() == [
            [path[: len(other)] == other for other in paths] for path in paths
        ]
        for j, path in enumerate(paths):
            children = [k for k, other in enumerate(paths) if other and other[:-1] == path]
            later = [k for k in range(j + 1, width) if path and paths[k][:-1] == path[:-1]]
            assert structure.next_child[b, j] == (children[0] if children else -1)
            assert structure.next_sibling[b, j] == (later[0] if later else -1)
        taken = walk(tokens, predict[b], paths)
        pads = [-1] * (num_steps + 1 - len(taken))
        assert accepted.accept_index[b].tolist() == taken + pads
        assert accepted.accept_lens[b] == len(taken)
        assert accepted.predict[b].tolist() == [
            predict[b][j] if j in taken else 0 for j in range(width)
        ]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(drafts())
def test_law_columns_find_the_expansion_of_every_parent(draft):
    topk, num_steps, width, requests, _ = draft
    selected, frontiers = run(topk, num_steps, width, requests)
    columns = law_columns(selected.parent_list, selected.top_scores_index)
    # A column of the parent list is one row of one frontier: its token identifies the law.
    owner = torch.cat([torch.full((len(requests), 1), -1), *(f.tokens for f in frontiers)], dim=1)
    structure = build_structure(
        selected.parent_list,
        selected.top_scores_index,
        torch.zeros(len(requests), dtype=torch.int64),
        topk=topk,
    )
    for b in range(len(requests)):
        for j in range(width):
            column = int(columns[b, j])
            if j == 0:
                assert column == 0
            elif structure.next_child[b, j] >= 0:
                assert owner[b, column] == selected.draft_tokens[b, j]
                assert selected.parent_list[b, column] == selected.top_scores_index[b, j - 1]


def test_frontier_rows_point_at_their_parents():
    _, frontier = first_level(torch.tensor([[0.6, 0.4]]).repeat(2, 1), torch.tensor([[1, 2]] * 2))
    assert frontier.parent_rows.tolist() == [0, 1, 2, 3]
    probs = torch.tensor([[0.9, 0.8], [0.1, 0.0], [0.2, 0.1], [0.9, 0.8]])
    level, chosen = next_level(frontier, probs, torch.tensor([[0, 1], [2, 3]] * 2), step=1)
    assert chosen.parent_rows.tolist() == [0, 0, 3, 3]
    assert chosen.tokens.tolist() == [[0, 1], [2, 3]]
    assert level.parents.tolist() == [[2, 3], [4, 5]]


def test_chain_is_the_tree_of_branching_one():
    seq_lens = torch.tensor([4, 0, 9])
    index = torch.arange(3).expand(3, 3)
    tree = build_structure(index - 1, index, seq_lens, topk=1)
    chain = chain_structure(seq_lens, num_draft_tokens=4)
    for name in ("tree_mask", "positions", "next_child", "next_sibling"):
        assert torch.equal(getattr(tree, name), getattr(chain, name))


def test_a_broken_draft_still_makes_a_tree():
    broken = torch.tensor([[float("nan"), 2.0]])
    level, frontier = first_level(broken, torch.tensor([[0, 1]]))
    below = torch.tensor([[float("inf"), float("nan")], [float("nan"), 3.0]])
    last, _ = next_level(frontier, below, torch.tensor([[2, 3], [4, 5]]), step=1)
    # Rank 1 scores one and so does its child of rank 1; a parent wins the tie against its child.
    chosen = {2: [1], 3: [1, 5], 4: [0, 1, 5]}
    for width, index in chosen.items():
        selected = select_nodes([level, last], torch.tensor([9]), num_draft_tokens=width)
        assert selected.top_scores_index.tolist() == [index]
    structure = build_structure(
        selected.parent_list, selected.top_scores_index, torch.tensor([0]), topk=2
    )
    assert structure.positions.tolist() == [[0, 1, 1, 2]]


@pytest.mark.parametrize("topk", [1, 2, 4])
def test_rank_scores_keep_the_first_draws_of_every_node(topk):
    scores = rank_scores(1, topk, device=torch.device("cpu"))
    level, frontier = first_level(scores, torch.arange(topk).unsqueeze(0))
    tokens = torch.arange(topk).expand(topk, topk)
    below = rank_scores(topk, topk, device=torch.device("cpu"))
    last, _ = next_level(frontier, below, tokens, step=1)
    for width in range(2, topk + topk * topk + 2):
        selected = select_nodes([level, last], torch.tensor([0]), num_draft_tokens=width)
        structure = build_structure(
            selected.parent_list, selected.top_scores_index, torch.tensor([0]), topk=topk
        )
        # Tokens are ranks here: the children of any node are its draws 0, 1, ... without a gap.
        for node in range(width):
            child, rank = int(structure.next_child[0, node]), 0
            while child >= 0:
                assert selected.draft_tokens[0, child] == rank
                child, rank = int(structure.next_sibling[0, child]), rank + 1


def test_idle_batch_keeps_ranks_and_dtypes():
    empty = torch.empty(0, 2)
    level, frontier = first_level(empty, empty.long())
    last, _ = next_level(frontier, empty, empty.long(), step=1)
    none = torch.empty(0, dtype=torch.int64)
    selected = select_nodes([level, last], none, num_draft_tokens=4)
    structure = build_structure(selected.parent_list, selected.top_scores_index, none, topk=2)
    accepted = accept_greedy(
        selected.draft_tokens, selected.draft_tokens, structure.tree_mask, accept_width=3
    )
    assert structure.tree_mask.shape == (0, 4, 4)
    assert accepted.accept_index.shape == (0, 3)
    assert accepted.accept_index.dtype == torch.int64
    assert accepted.accept_lens.dtype == torch.int32
    assert law_columns(selected.parent_list, selected.top_scores_index).shape == (0, 4)


def test_too_few_candidates_says_what_to_change():
    level, _ = first_level(torch.tensor([[0.5, 0.5]]), torch.tensor([[0, 1]]))
    with pytest.raises(EngineError, match=r"offer 2 candidates; set num_draft_tokens to 3"):
        select_nodes([level], torch.tensor([0]), num_draft_tokens=4)
