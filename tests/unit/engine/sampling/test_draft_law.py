"""A draft law comes from the sampler that drew; a hot vocabulary is read as offsets."""

import dataclasses

import pytest
import torch

from engine.errors import EngineError
from engine.sampling import (
    BatchControls,
    HotVocab,
    RootLaw,
    SamplingParams,
    TreeLaw,
    choose_children,
    draw_root,
    draw_step,
)
from shapecheck import Dims, ShapeContractError

CPU = torch.device("cpu")


@pytest.fixture
def controls() -> BatchControls:
    params = [SamplingParams(temperature=0.5), SamplingParams(top_k=2)]
    return BatchControls.of(params, [0, 1], device=CPU)


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn(2, 5, generator=torch.Generator().manual_seed(4))


def test_nobody_else_makes_a_law(controls, logits):
    _, law = draw_root(logits, controls, torch.full((2, 1), 0.5).double())
    with pytest.raises(EngineError, match=r"RootLaw is made by the sampler.*call draw_root"):
        RootLaw(probs=law.probs, seal=None)
    with pytest.raises(ValueError, match="seal"):
        dataclasses.replace(law, probs=torch.ones_like(law.probs))
    with pytest.raises(dataclasses.FrozenInstanceError):
        law.probs = torch.ones_like(law.probs)


def test_the_law_is_the_filtered_one(controls, logits):
    tokens, law = draw_root(logits, controls, torch.zeros(2, 3).double())
    assert torch.allclose(law.probs[0], (logits[0] / 0.5).softmax(dim=0))
    assert int((law.probs[1] > 0).sum()) == 2
    assert all(len(set(row)) == 3 for row in tokens.tolist())
    # Request 1 may draw two tokens; the third child is the best of the rest.
    third = logits[1].argsort(descending=True)[2]
    assert tokens[1, 2] == third


def test_rows_of_a_frontier_belong_to_their_requests(controls, logits):
    spread = logits.repeat_interleave(2, dim=0)
    _, root = draw_root(logits, controls, torch.zeros(2, 1).double())
    _, step = draw_step(spread, controls, torch.zeros(4, 2).double())
    assert torch.equal(step.probs, root.probs.repeat_interleave(2, dim=0))


def test_filter_merge_idle_and_copies_keep_the_law(controls, logits):
    _, root = draw_root(logits, controls, torch.zeros(2, 1).double())
    law = TreeLaw.assemble(root, [], torch.zeros(2, 3, dtype=torch.int64))
    assert torch.equal(law.probs, root.probs.unsqueeze(1).expand(2, 3, 5))
    back = RootLaw.merge([root.rows(torch.tensor([1])), root.rows(torch.tensor([0]))])
    assert torch.equal(back.probs, root.probs.flip(0))
    idle = RootLaw.undrawn(0, 5, device=CPU)
    assert (idle.probs.shape, idle.probs.dtype) == ((0, 5), torch.float32)
    assert torch.equal(RootLaw.merge([root, idle]).probs, root.probs)
    copied = law.mapped(torch.clone)
    assert copied.probs is not law.probs
    assert torch.equal(copied.probs, law.probs)


@pytest.mark.parametrize("topk", [1, 2])
def test_an_idle_rank_assembles_a_law_of_no_rows(topk):
    idle = BatchControls.of([], [], device=CPU)
    _, root = draw_root(torch.zeros(0, 5), idle, torch.zeros(0, topk).double())
    _, step = draw_step(torch.zeros(0, 5), idle, torch.zeros(0, topk).double())
    law = TreeLaw.assemble(root, [step], torch.zeros(0, 4, dtype=torch.int64))
    assert (law.probs.shape, law.probs.dtype) == ((0, 4, 5), torch.float32)


def dims(draft_vocab: int) -> Dims:
    model = {"num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 4}
    return Dims.from_configs(
        {**model, "model_type": "llama", "hidden_size": 8, "vocab_size": 9},
        {**model, "model_type": "llama", "hidden_size": 4, "vocab_size": draft_vocab},
        algorithm="standalone",
        num_steps=2,
    )


def test_a_law_is_a_carrier_whose_rows_sum_to_one(controls, logits):
    _, root = draw_root(logits, controls, torch.zeros(2, 1).double())
    law = TreeLaw.assemble(root, [], torch.zeros(2, 3, dtype=torch.int64))
    padded = law.mapped(lambda probs: torch.cat((probs, torch.zeros(2, 3, 5))))
    for one in (root, law, padded):
        one.check(dims(draft_vocab=5))
    with pytest.raises(ShapeContractError, match="draft_vocab is 7"):
        law.check(dims(draft_vocab=7))
    law.probs.mul_(0.5)
    with pytest.raises(ShapeContractError, match="is_a_law is false"):
        law.check(dims(draft_vocab=5))


def test_chosen_children_are_the_best_with_their_probabilities(logits):
    probs, tokens = choose_children(logits, topk=3)
    whole = logits.softmax(dim=1)
    assert torch.equal(tokens, whole.topk(3).indices)
    assert torch.allclose(probs, whole.topk(3).values)


def test_offsets_map_draft_ids_to_target_ids():
    hot = HotVocab.from_offsets(torch.tensor([0, 2, 2, 5]), target_vocab=9)
    assert hot.target_ids(torch.tensor([[3, 0]])).tolist() == [[8, 0]]
    assert hot.cold.tolist() == [0, -1, -1, 1, 2, -1, -1, -1, 3]
    spread = hot.to_target(torch.tensor([[0.1, 0.2, 0.3, 0.4]]))
    assert torch.equal(spread[0, [0, 3, 4, 8]], torch.tensor([0.1, 0.2, 0.3, 0.4]))
    assert float(spread.sum()) == pytest.approx(1.0)
    assert not hot.is_whole


def test_whole_vocabulary_moves_nothing():
    weights = torch.rand(2, 4)
    assert HotVocab.whole(4, device=CPU).to_target(weights) is weights
    assert HotVocab.from_offsets(torch.zeros(4, dtype=torch.int64), target_vocab=4).is_whole
    swapped = HotVocab.from_offsets(torch.tensor([1, -1]), target_vocab=2)
    assert not swapped.is_whole
    assert torch.equal(swapped.to_target(weights[:, :2]), weights[:, :2].flip(1))


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([0, 3, 7], r"d2t\[2\] = 7 maps draft id 2 to target id 9, outside target_vocab=9"),
        ([-1, 0], r"d2t\[0\] = -1 maps draft id 0 to target id -1"),
        ([1, 0, 0], r"two draft ids to one target id"),
    ],
)
def test_offsets_that_are_ids_or_foreign_are_refused(offsets, message):
    with pytest.raises(EngineError, match=message) as caught:
        HotVocab.from_offsets(torch.tensor(offsets), target_vocab=9)
    assert "subtract arange(len(d2t))" in str(caught.value)
