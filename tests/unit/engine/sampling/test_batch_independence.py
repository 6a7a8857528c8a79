"""A request draws and keeps the same tokens whatever else is in its batch."""

import pytest
import torch

from engine.sampling import (
    BatchControls,
    HotVocab,
    SamplingParams,
    Stream,
    TokenCounts,
    TreeLaw,
    accept_chain,
    accept_tree,
    coins,
    draw_root,
    draw_step,
    penalise,
    sampling_law,
)
from engine.tree import (
    Accepted,
    accept_greedy,
    build_structure,
    first_level,
    law_columns,
    next_level,
    rank_scores,
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


def run(requests: list[int], topk: int, *, params=PARAMS, greedy: bool = False) -> Accepted:
    """One iteration of these requests over logits that are theirs alone."""
    rows, at = len(requests), POSITIONS[requests]
    controls = BatchControls.of(
        [params[r] for r in requests], [SEEDS[r] for r in requests], device=CPU
    )
    counts = TokenCounts.of([[1]] * rows, [[2, 3]] * rows, target_vocab=VOCAB, device=CPU)
    lanes = coins(controls.seeds, at, Stream.DRAFT, lanes=topk + topk * topk)
    first, deeper, target = LOGITS[requests].split([1, 2, WIDTH], dim=1)
    tokens, root = draw_root(first[:, 0], controls, lanes[:, :topk])
    level, frontier = first_level(rank_scores(rows, topk, device=CPU), tokens)
    tokens, below = draw_step(
        deeper[:, :topk].flatten(0, 1), controls, lanes[:, topk:].reshape(-1, topk)
    )
    last, _ = next_level(frontier, rank_scores(rows * topk, topk, device=CPU), tokens, step=1)
    width = WIDTH if topk > 1 else STEPS + 1
    selected = select_nodes([level, last], at % VOCAB, num_draft_tokens=width)
    tree = build_structure(selected.parent_list, selected.top_scores_index, at, topk=topk)
    columns = law_columns(selected.parent_list, selected.top_scores_index)
    logits = penalise(target[:, :width], selected.draft_tokens, tree.tree_mask, counts, controls)
    if greedy:
        best = logits.argmax(dim=2)
        return accept_greedy(selected.draft_tokens, best, tree.tree_mask, accept_width=STEPS + 1)
    inputs = (
        sampling_law(logits, controls),
        selected.draft_tokens,
        TreeLaw.assemble(root, [below], columns),
        HotVocab.whole(VOCAB, device=CPU),
    )
    links = (tree.next_child, tree.next_sibling)
    accept = coins(controls.seeds, at, Stream.ACCEPT, lanes=width)
    final = coins(controls.seeds, at, Stream.FINAL, lanes=1).squeeze(1)
    if topk == 1:
        return accept_chain(*inputs, accept, final, accept_width=STEPS + 1)
    return accept_tree(*inputs, *links, accept, final, accept_width=STEPS + 1)


@pytest.mark.parametrize("topk", [1, 2])
def test_the_same_tokens_in_any_batch(topk):
    together = run([0, 1, 2, 3], topk)
    order = [3, 1, 0, 2]
    turned = run(order, topk)
    for request in range(4):
        alone = run([request], topk)
        for name in ("predict", "accept_index", "accept_lens"):
            wanted = getattr(together, name)[request]
            assert torch.equal(getattr(alone, name)[0], wanted)
            assert torch.equal(getattr(turned, name)[order.index(request)], wanted)


@pytest.mark.parametrize("topk", [1, 2])
def test_greedy_requests_may_take_the_short_way(topk):
    """Among drawn requests greedy ones get what an all-greedy batch gets from argmax alone."""
    params = [SamplingParams(temperature=0.0)] * 3 + [SamplingParams()]
    short = run([0, 1, 2], topk, params=params, greedy=True)
    long = run([0, 1, 2, 3], topk, params=params)
    assert torch.equal(short.predict, long.predict[:3])
    assert torch.equal(short.accept_index, long.accept_index[:3])
