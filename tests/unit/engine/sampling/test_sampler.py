"""The sampler's choices: one rule for mixed batches, and nothing that depends on the batch."""

import pytest
import torch

from engine.errors import EngineError
from engine.sampling import (
    BatchControls,
    HotVocab,
    Sampler,
    SamplingParams,
    TokenCounts,
    TreeLaw,
    next_tokens,
)
from engine.tree import (
    Accepted,
    build_structure,
    first_level,
    law_columns,
    next_level,
    select_nodes,
)

CPU = torch.device("cpu")
VOCAB, WIDTH, STEPS = 9, 6, 2
PARAMS = [
    SamplingParams(temperature=0.0),
    SamplingParams(temperature=0.8, top_p=0.9),
    SamplingParams(top_k=3, repetition_penalty=1.4),
    SamplingParams(min_p=0.05),
]
SEEDS = [11, 12, 13, 14]
POSITIONS = torch.tensor([4, 90, 7, 31])
LOGITS = torch.randn(4, 3 + WIDTH, VOCAB, generator=torch.Generator().manual_seed(8)) * 1.5


def run(requests: list[int], topk: int, *, draws: bool, params=PARAMS) -> Accepted:
    """One iteration of these requests over logits that are theirs alone."""
    controls = BatchControls.of(
        [params[r] for r in requests], [SEEDS[r] for r in requests], device=CPU
    )
    logits, positions = LOGITS[requests], POSITIONS[requests]
    vocab = HotVocab.whole(VOCAB, device=CPU)
    sampler = Sampler(vocab=vocab, topk=topk, accept_width=STEPS + 1, draws=draws)
    counts = TokenCounts.of(
        [[1]] * len(requests), [[2, 3]] * len(requests), target_vocab=VOCAB, device=CPU
    )
    root = sampler.root_children(logits[:, 0], positions, controls)
    level, frontier = first_level(root.topk_p, root.topk_index)
    deeper = logits[:, 1 : 1 + topk].flatten(0, 1)
    below = sampler.step_children(deeper, positions, controls, step=1)
    last, _ = next_level(frontier, below.topk_p, below.topk_index, step=1)
    width = WIDTH if topk > 1 else STEPS + 1
    selected = select_nodes([level, last], positions % VOCAB, num_draft_tokens=width)
    tree = build_structure(selected.parent_list, selected.top_scores_index, positions, topk=topk)
    law = None
    if draws:
        columns = law_columns(selected.parent_list, selected.top_scores_index)
        law = TreeLaw.assemble(root.law, [below.law], columns)
    target = logits[:, 3 : 3 + width]
    return sampler.accept(target, selected.draft_tokens, tree, law, controls, counts)


KINDS = pytest.mark.parametrize(("topk", "draws"), [(1, True), (2, True), (1, False), (2, False)])


@KINDS
def test_a_request_gets_the_same_tokens_in_any_batch(topk, draws):
    together = run([0, 1, 2, 3], topk, draws=draws)
    turned = run([3, 1, 0, 2], topk, draws=draws)
    for request in range(4):
        alone = run([request], topk, draws=draws)
        place = [3, 1, 0, 2].index(request)
        for name in ("predict", "accept_index", "accept_lens"):
            assert torch.equal(getattr(alone, name)[0], getattr(together, name)[request])
            assert torch.equal(getattr(turned, name)[place], getattr(together, name)[request])


@KINDS
def test_an_all_greedy_batch_takes_the_short_way_to_the_same_result(topk, draws):
    greedy = [SamplingParams(temperature=0.0)] * 3 + [SamplingParams()]
    short = run([0, 1, 2], topk, draws=draws, params=greedy)
    long = run([0, 1, 2, 3], topk, draws=draws, params=greedy)
    assert torch.equal(short.predict, long.predict[:3])
    assert torch.equal(short.accept_index, long.accept_index[:3])


def test_draws_differ_between_seeds_and_positions():
    controls = BatchControls.of([SamplingParams()] * 200, range(200), device=CPU)
    logits, at = torch.zeros(200, VOCAB), torch.zeros(200, dtype=torch.int64)
    here, there = next_tokens(logits, at, controls), next_tokens(logits, at + 1, controls)
    assert torch.equal(here, next_tokens(logits, at, controls))
    assert len(here.unique()) == VOCAB
    assert 0 < int((here == there).sum()) < 60


@pytest.mark.parametrize("topk", [1, 2])
def test_draws_of_two_steps_are_independent(topk):
    rows, at = 200, torch.zeros(200, dtype=torch.int64)
    controls = BatchControls.of([SamplingParams()] * rows, range(rows), device=CPU)
    vocab = HotVocab.whole(VOCAB, device=CPU)
    sampler = Sampler(vocab=vocab, topk=topk, accept_width=4, draws=True)
    tokens = [sampler.root_children(torch.zeros(rows, VOCAB), at, controls).topk_index[:, 0]]
    for step in (1, 2):
        logits = torch.zeros(rows * topk, VOCAB)
        index = sampler.step_children(logits, at, controls, step=step).topk_index
        tokens += index.view(rows, topk, topk)[:, :, 0].unbind(dim=1)
    for i, one in enumerate(tokens):
        for other in tokens[:i]:
            assert 0 < int((one == other).sum()) < 60


def test_next_tokens_follow_penalties_and_greed():
    params = [SamplingParams(temperature=0.0, presence_penalty=2.0), SamplingParams(temperature=0)]
    controls = BatchControls.of(params, [0, 1], device=CPU)
    counts = TokenCounts.of([[], []], [[2], [2]], target_vocab=3, device=CPU)
    logits = torch.tensor([[0.0, 1.0, 2.0]] * 2)
    assert next_tokens(logits, torch.tensor([1, 1]), controls, counts).tolist() == [1, 2]


def test_penalties_without_counts_are_refused():
    controls = BatchControls.of([SamplingParams(presence_penalty=1.0)], [0], device=CPU)
    with pytest.raises(EngineError, match=r"pass TokenCounts\.of"):
        next_tokens(torch.zeros(1, 3), torch.tensor([0]), controls)
