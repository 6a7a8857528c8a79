"""Tree build and greedy acceptance reproduce what a production engine's kernels returned."""

import json
from pathlib import Path

import pytest
import torch

from engine.tree import accept_greedy, build_structure

DATA = next(p for p in Path(__file__).parents if p.name == "tests") / "data" / "golden_tree.json"
SETTINGS = json.loads(DATA.read_text())


def _name(setting: dict[str, object]) -> str:
    return "-".join(f"{key}{setting[key]}" for key in ("B", "K", "S", "N"))


@pytest.fixture(params=SETTINGS, ids=_name)
def setting(request: pytest.FixtureRequest) -> dict[str, object]:
    return request.param


def test_structure(setting):
    parents = torch.tensor(setting["parent_list"], dtype=torch.int64).view(setting["B"], -1)
    structure = build_structure(
        parents,
        torch.tensor(setting["top_scores_index"]),
        torch.tensor(setting["seq_lens"]),
        topk=setting["K"],
    )
    assert structure.tree_mask.int().tolist() == setting["ancestors"]
    assert structure.positions.tolist() == setting["positions"]
    assert structure.next_child.tolist() == setting["retrieve_next_token"]
    assert structure.next_sibling.tolist() == setting["retrieve_next_sibling"]


def test_greedy_acceptance(setting):
    width, accept_width = setting["N"], len(setting["accept_index"][0])
    accepted = accept_greedy(
        torch.tensor(setting["candidates"]),
        torch.tensor(setting["target_predict"]),
        torch.tensor(setting["ancestors"], dtype=torch.bool),
        accept_width=accept_width,
    )
    starts = torch.arange(setting["B"]).unsqueeze(1) * width
    global_index = torch.where(accepted.accept_index < 0, -1, accepted.accept_index + starts)
    assert accept_width == setting["S"] + 1
    assert global_index.tolist() == setting["accept_index"]
    assert accepted.predict.flatten().tolist() == setting["predict"]
    assert (accepted.accept_lens - 1).tolist() == setting["num_correct_drafts"]


def test_candidates_are_the_draft_tokens_behind_the_root(setting):
    assert [row[1:] for row in setting["candidates"]] == setting["draft_tokens"]
