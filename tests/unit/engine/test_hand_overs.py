"""What crosses between phases beyond its sizes: links of a tree, lengths that the host planned."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.attention.base import Ragged
from engine.carriers import PrefillInput, VerifyInput
from engine.tree import structure
from engine.tree.select import law_columns
from shapecheck import Dims, ShapeContractError, enable

_TARGET = {"vocab_size": 50, "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}


def _dims(**tree: int) -> Dims:
    return Dims.from_configs(_TARGET, algorithm="ngram", **tree)


def _tree() -> VerifyInput:
    """A root with two children, the first of which has a child."""
    seq_lens = torch.tensor([5])
    parents, chosen = torch.tensor([[-1, 0, 1]]), torch.tensor([[0, 1, 2]])
    built = structure.build_structure(parents, chosen, seq_lens, topk=2)
    return VerifyInput(
        draft_tokens=torch.tensor([[7, 8, 9, 10]]),
        tree_mask=built.tree_mask,
        positions=built.positions,
        next_child=built.next_child,
        next_sibling=built.next_sibling,
        draft_probs=None,
        seq_lens=seq_lens,
        slots=torch.tensor([[1, 2, 3, 4]]),
        req_rows_index=torch.tensor([1]),
        max_seq_len=5,
    )


def test_links_of_a_tree_follow_its_mask() -> None:
    dims, tree = _dims(num_steps=3), _tree()
    assert tree.next_child.tolist() == [[1, 3, -1, -1]]
    assert tree.next_sibling.tolist() == [[-1, 2, -1, -1]]
    tree.check(dims)


@pytest.mark.parametrize(("field", "node"), [("next_child", 1), ("next_sibling", 1)])
def test_a_node_that_nothing_links_to_is_refused(field: str, node: int) -> None:
    """A sibling left out of the walk would never be judged, and the law no longer be kept."""
    tree = _tree()
    links = getattr(tree, field).clone()
    links[0, node] = -1
    with pytest.raises(ShapeContractError, match=r"(?s)SHP206 .*every_node_is_linked_once"):
        replace(tree, **{field: links}).check(_dims(num_steps=3))


@pytest.mark.parametrize("field", ["next_child", "next_sibling"])
@pytest.mark.parametrize("link", [(0, 3), (2, 3)])
def test_a_link_to_a_node_that_is_no_child_or_sibling_is_refused(
    field: str, link: tuple[int, int]
) -> None:
    tree, (node, other) = _tree(), link
    links = getattr(tree, field).clone()
    links[0, node] = other
    with pytest.raises(
        ShapeContractError, match=r"(?s)SHP206 .*(links_follow_the_mask|every_node_is_linked_once)"
    ):
        replace(tree, **{field: links}).check(_dims(num_steps=3))


def test_the_host_selects_rows_that_exist_and_counts_them_all() -> None:
    work = Ragged(req_rows=(1, 2), prefix_lens=(0, 0), extend_lens=(2, 1))
    rows = torch.arange(3)
    batch = PrefillInput(
        input_ids=rows,
        positions=torch.tensor([0, 1, 0]),
        select_index=torch.tensor([2]),
        seq_lens=torch.tensor([1]),
        work=work,
    )
    batch.check(_dims(num_steps=3))
    for wrong, said in (
        ({"positions": rows}, "positions_follow_the_work"),
        ({"seq_lens": torch.tensor([2])}, "a_prompt_ends_at_its_length"),
    ):
        with pytest.raises(ShapeContractError, match=f"(?s)SHP206 .*{said}"):
            replace(batch, **wrong).check(_dims(num_steps=3))
    beyond = replace(batch, select_index=torch.tensor([3]))
    with pytest.raises(ShapeContractError, match=r"(?s)SHP307 .*select_index.*tokens"):
        beyond.check(_dims(num_steps=3))
    longer = replace(batch, work=replace(work, extend_lens=(2, 2)))
    with pytest.raises(ShapeContractError, match=r"(?s)SHP206 .*work_counts_the_rows"):
        longer.check(_dims(num_steps=3))


def test_nodes_of_a_tree_are_the_root_and_all_its_candidates() -> None:
    chosen = torch.tensor([[0, 1, 2]])
    with enable(structure, level="strict"):
        assert structure.node_ids(chosen).tolist() == [[-1, 0, 1, 2]]
    assert law_columns(torch.tensor([[-1, 0, 1]]), chosen).tolist() == [[0, 1, 2, 0]]
