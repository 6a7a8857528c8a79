"""Many requests through the whole sampler: frequencies of pairs, and faults that must show.

The false alarm of each test is 1e-9; seeds are fixed, so a green test stays green. The same
statistic must raise the alarm for a wrong draft law, a missing residual and a coin used twice.
"""

import pytest
import torch

from engine.sampling import (
    BatchControls,
    HotVocab,
    SamplingParams,
    Stream,
    TreeLaw,
    accept_chain,
    accept_tree,
    choose_children,
    coins,
    draw,
    draw_root,
    draw_step,
    rejection,
    sampling_law,
)
from engine.tree import (
    accept_greedy,
    build_structure,
    first_level,
    law_columns,
    next_level,
    rank_scores,
    select_nodes,
)

CPU = torch.device("cpu")
ROWS, VOCAB = 20_000, 6
FALSE_ALARM = 1e-9
HOT = torch.tensor([0, 2, 3, 5])


def bigram(seed: int, vocab: int) -> torch.Tensor:
    """Logits of the next token given the last one: a model with context."""
    return torch.randn(VOCAB, vocab, generator=torch.Generator().manual_seed(seed)) * 1.2


TARGET, DRAFT = bigram(1, VOCAB), bigram(2, len(HOT))


def emitted_pairs(topk: int, *, mode: str = "drawn", fault: str = "") -> torch.Tensor:
    """The first two tokens of every request after the root, token 0: (ROWS, 2)."""
    params = SamplingParams(temperature=0.9, top_p=0.97)
    controls = BatchControls.of([params] * ROWS, range(ROWS), device=CPU)
    hot = HotVocab.from_offsets(HOT - torch.arange(len(HOT)), target_vocab=VOCAB)
    at = torch.full((ROWS,), 17)
    width = 3 if topk == 1 else 2 + topk * 2
    root_tokens = torch.zeros(ROWS, dtype=torch.int64)

    lanes = topk + topk * topk
    draft_coins = coins(controls.seeds, at, Stream.DRAFT, lanes=lanes)
    first, second = draft_coins[:, :topk], draft_coins[:, topk:].reshape(-1, topk)
    root_logits = DRAFT[root_tokens]
    tokens, root_law = draw_root(root_logits, controls, first)
    scores = rank_scores(ROWS, topk, device=CPU)
    if mode == "chosen":
        scores, tokens = choose_children(root_logits, topk=topk)
    level, frontier = first_level(scores, hot.target_ids(tokens))
    step_logits = DRAFT[frontier.tokens.flatten()]
    tokens, step_law = draw_step(step_logits, controls, second)
    scores = rank_scores(ROWS * topk, topk, device=CPU)
    if mode == "chosen":
        scores, tokens = choose_children(step_logits, topk=topk)
    last, _ = next_level(frontier, scores, hot.target_ids(tokens), step=1)
    if fault == "wrong law":
        other = BatchControls.of([SamplingParams(temperature=3.0)] * ROWS, range(ROWS), device=CPU)
        _, root_law = draw_root(root_logits, other, first)
    selected = select_nodes([level, last], root_tokens, num_draft_tokens=width)
    structure = build_structure(selected.parent_list, selected.top_scores_index, at, topk=topk)
    target = sampling_law(TARGET[selected.draft_tokens], controls)
    accept = coins(controls.seeds, at, Stream.ACCEPT, lanes=width)
    final = coins(controls.seeds, at, Stream.FINAL, lanes=1)[:, 0]
    if fault == "draft coin again":
        accept = torch.cat([accept[:, :1], first, accept[:, 1 + topk :]], dim=1)
    if fault == "accept coin again":
        final = accept[:, 1]
    if mode == "chosen":
        # The coin of a position, whichever node stands there: siblings share it.
        seeds = controls.seeds.repeat_interleave(width)
        coin = coins(seeds, structure.positions.flatten() + 1, Stream.TARGET, lanes=1)[:, 0]
        drawn = draw(target.flatten(0, 1), coin).view(ROWS, width)
        accepted = accept_greedy(selected.draft_tokens, drawn, structure.tree_mask, accept_width=3)
    else:
        columns = law_columns(selected.parent_list, selected.top_scores_index)
        law = TreeLaw.assemble(root_law, [step_law], columns)
        inputs = (target, selected.draft_tokens, law, hot)
        links = (structure.next_child, structure.next_sibling)
        accepted = (
            accept_chain(*inputs, accept, final, accept_width=3)
            if topk == 1
            else accept_tree(*inputs, *links, accept, final, accept_width=3)
        )
    new = accepted.predict.gather(1, accepted.accept_index.clamp(min=0))
    # A request that kept no draft token goes on with the target alone, one position further.
    one = coins(controls.seeds, at + 2, Stream.TARGET, lanes=1)[:, 0]
    alone = draw(sampling_law(TARGET[new[:, :1]], controls)[:, 0], one)
    second_token = torch.where(accepted.accept_lens > 1, new[:, 1], alone)
    return torch.stack([new[:, 0], second_token], dim=1)


def alarm(pairs: torch.Tensor) -> float:
    """The chi-square tail probability of the pair frequencies under the target's law."""
    controls = BatchControls.of([SamplingParams(temperature=0.9, top_p=0.97)], [0], device=CPU)
    law = sampling_law(TARGET.unsqueeze(0), controls)[0].double()
    wanted = (law[0].unsqueeze(1) * law).flatten() * len(pairs)
    counts = torch.bincount(pairs[:, 0] * VOCAB + pairs[:, 1], minlength=VOCAB * VOCAB).double()
    possible = wanted > 0
    if bool((counts[~possible] > 0).any()):
        return 0.0
    statistic = ((counts - wanted)[possible] ** 2 / wanted[possible]).sum()
    return float(torch.special.gammaincc((possible.sum() - 1) / 2, statistic / 2))


@pytest.mark.parametrize(("topk", "mode"), [(1, "drawn"), (2, "drawn"), (2, "chosen")])
def test_pairs_follow_the_target(topk, mode):
    assert alarm(emitted_pairs(topk, mode=mode)) > FALSE_ALARM


@pytest.mark.parametrize("topk", [1, 2], ids=["chain", "tree"])
@pytest.mark.parametrize("fault", ["wrong law", "draft coin again", "accept coin again"])
def test_a_fault_raises_the_alarm(topk, fault):
    assert alarm(emitted_pairs(topk, fault=fault)) < FALSE_ALARM


@pytest.mark.parametrize("topk", [1, 2], ids=["chain", "tree"])
def test_a_missing_residual_raises_the_alarm(topk, monkeypatch):
    monkeypatch.setattr(rejection, "_without", lambda left, whole, law: (left, whole))
    assert alarm(emitted_pairs(topk)) < FALSE_ALARM


def test_coins_are_uniform_and_independent_of_their_neighbours():
    seeds = torch.arange(200)
    table = coins(seeds, torch.zeros(200, dtype=torch.int64), Stream.ACCEPT, lanes=300)
    other = coins(seeds, torch.ones(200, dtype=torch.int64), Stream.ACCEPT, lanes=300)
    pairs = {
        "one coin": (table, None),
        "next lane": (table[:, :-1], table[:, 1:]),
        "next seed": (table[:-1], table[1:]),
        "next position": (table, other),
    }
    for name, (one, two) in pairs.items():
        cell = (one * 16).long().flatten()
        cells = 16
        if two is not None:
            cell, cells = cell * 16 + (two * 16).long().flatten(), 256
        counts = torch.bincount(cell, minlength=cells).double()
        mean = len(cell) / cells
        tail = torch.special.gammaincc(
            torch.tensor((cells - 1) / 2).double(), ((counts - mean) ** 2 / mean).sum() / 2
        )
        assert FALSE_ALARM < float(tail) < 1 - FALSE_ALARM, name
