"""The vectorised verifiers against float64 scalars in plain Python: same coins, same tokens."""

import functools
import math
import operator

import pytest
import torch

from engine.sampling import (
    BatchControls,
    HotVocab,
    SamplingParams,
    TreeLaw,
    accept_chain,
    accept_tree,
    draw_root,
    sampling_law,
)
from engine.tree import (
    accept_greedy,
    build_structure,
    chain_structure,
    first_level,
    law_columns,
    rank_scores,
    select_nodes,
)
from shapecheck.spec import contract_of
from tests.unit.engine.drawn import DrawnBatch, drawn_batch, random_coins

CPU = torch.device("cpu")
ROWS, VOCAB = 96, 12
HOT = [0, 1, 3, 4, 7, 8, 10, 11]


def total(weights: list[float]) -> float:
    """The running sum of the draw: `sum` of Python 3.12 and later compensates, and differs."""
    return functools.reduce(operator.add, weights, 0.0)


def scalar_draw(weights: list[float], coin: float) -> int:
    threshold, running = coin * total(weights), 0.0
    for token, weight in enumerate(weights):
        running += weight
        if running > threshold:
            return token
    return len(weights) - 1


def scalar_reject(p, tokens, q, hot, children, accept, final):
    """Walk from the root; at every node judge the children in order, then draw what is left."""
    node, path, predict = 0, [0], [0] * len(tokens)
    while True:
        left = list(p[node])
        rest = [0.0] * len(left)
        for draft_id, weight in enumerate(q[node]):
            rest[hot[draft_id]] = weight
        for child in children[node]:
            token, mass = tokens[child], math.fsum(rest)
            law = (
                [w / mass for w in rest] if mass else [float(t == token) for t in range(len(p[0]))]
            )
            rest[token] = 0.0
            if law[token] <= 0:
                continue
            if accept[child] * law[token] < left[token]:
                predict[node] = token
                node = child
                path.append(child)
                break
            reduced = [max(a - b, 0.0) for a, b in zip(left, law, strict=True)]
            if total(reduced) > 0:
                left = [w / total(reduced) for w in reduced]
        else:
            predict[node] = scalar_draw(left, final)
            return path, predict


def expected(batch: DrawnBatch):
    tokens, structure = batch.tokens, batch.structure
    for b in range(ROWS):
        children: list[list[int]] = []
        for node in range(tokens.shape[1]):
            child, found = int(structure.next_child[b, node]), []
            while child >= 0:
                found.append(child)
                child = int(structure.next_sibling[b, child])
            children.append(found)
        path, predict = scalar_reject(
            batch.target[b].double().tolist(),
            tokens[b].tolist(),
            batch.law.probs[b].double().tolist(),
            batch.vocab.hot.tolist(),
            children,
            batch.accept[b].tolist(),
            float(batch.final[b]),
        )
        yield path + [-1] * (batch.accept_width - len(path)), predict, len(path)


SHAPES = [(1, 1, 2), (1, 3, 4), (2, 2, 6), (3, 2, 8), (4, 3, 16)]


@pytest.mark.parametrize("hot", [None, HOT], ids=["whole", "hot"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_token_identical(shape, hot):
    topk, num_steps, width = shape
    batch = drawn_batch(
        topk=topk,
        num_steps=num_steps,
        width=width,
        rows=ROWS,
        target_vocab=VOCAB,
        hot=hot,
        padded=4,
        seed=topk + num_steps,
    )
    wanted = list(expected(batch))
    results = [batch.along_links(accept_tree)]
    if topk == 1:
        results.append(batch.along_chain(accept_chain))
    for result in results:
        assert result.accept_index.tolist() == [path for path, _, _ in wanted]
        assert result.predict.tolist() == [predict for _, predict, _ in wanted]
        assert result.accept_lens.tolist() == [length for _, _, length in wanted]
        assert result.accept_lens.dtype == torch.int32
    # The batch is worth something only if paths of every length occur.
    assert {length for _, _, length in wanted} == set(range(1, batch.accept_width + 1))


def test_a_greedy_request_in_a_drawn_batch_follows_the_argmax():
    generator = torch.Generator().manual_seed(3)
    controls = BatchControls.of([SamplingParams(temperature=0.0)] * 8, range(8), device=CPU)
    logits = torch.randn(8, 4, VOCAB, generator=generator)
    target = sampling_law(logits, controls)
    hot = HotVocab.whole(VOCAB, device=CPU)
    draft = torch.randn(8, VOCAB, generator=generator)
    tokens, root = draw_root(draft, controls, torch.full((8, 3), 0.3, dtype=torch.float64))
    # Exhausted after the best token: the next children are the next best, not repeats.
    assert torch.equal(tokens, draft.topk(3).indices)
    level, _ = first_level(rank_scores(8, 3, device=CPU), tokens)
    selected = select_nodes([level], torch.zeros(8, dtype=torch.int64), num_draft_tokens=4)
    structure = build_structure(
        selected.parent_list, selected.top_scores_index, selected.draft_tokens[:, 0], topk=3
    )
    columns = law_columns(selected.parent_list, selected.top_scores_index)
    drawn = accept_tree(
        target,
        selected.draft_tokens,
        TreeLaw.assemble(root, [], columns),
        hot,
        structure.next_child,
        structure.next_sibling,
        random_coins(generator, 8, 4),
        random_coins(generator, 8),
        accept_width=2,
    )
    best = logits.argmax(dim=2)
    matched = accept_greedy(selected.draft_tokens, best, structure.tree_mask, accept_width=2)
    assert torch.equal(drawn.accept_index, matched.accept_index)
    assert torch.equal(drawn.predict, matched.predict)
    assert torch.equal(drawn.predict[:, 0], best[:, 0])
    assert {1, 2} == set(drawn.accept_lens.tolist())


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_broken_draft_law_refuses_and_leaves_the_target_alone(broken):
    controls = BatchControls.of([SamplingParams()], [5], device=CPU)
    # Without its contract, which refuses such a law at full: this is what the acceptance sees then.
    contract = contract_of(draw_root)
    assert contract is not None
    tokens, root = contract.function(
        torch.full((1, 4), broken), controls, torch.zeros(1, 1).double()
    )
    assert 0 <= int(tokens) < 4
    law = TreeLaw.assemble(root, [], torch.zeros(1, 2, dtype=torch.int64))
    structure = chain_structure(torch.tensor([0]), num_draft_tokens=2)
    target = torch.tensor([[[0.5, 0.5, 0.0, 0.0]] * 2])
    draft_tokens = torch.cat([torch.zeros(1, 1).long(), tokens], dim=1)
    hot = HotVocab.whole(4, device=CPU)
    accept, final = torch.zeros(1, 2).double(), torch.tensor([0.75]).double()
    links = (structure.next_child, structure.next_sibling)
    for result in (
        accept_chain(target, draft_tokens, law, hot, accept, final, accept_width=2),
        accept_tree(target, draft_tokens, law, hot, *links, accept, final, accept_width=2),
    ):
        assert result.accept_index.tolist() == [[0, -1]]
        assert result.predict.tolist() == [[1, 0]]


@pytest.mark.parametrize("rows", [0, 3])
def test_no_draft_and_no_request(rows):
    """Width 1 is plain decoding; an idle batch keeps ranks, widths and dtypes."""
    controls = BatchControls.of([SamplingParams()] * rows, range(rows), device=CPU)
    _, root = draw_root(torch.zeros(rows, 4), controls, torch.zeros(rows, 1).double())
    law = TreeLaw.assemble(root, [], torch.zeros(rows, 1, dtype=torch.int64))
    target = sampling_law(torch.zeros(rows, 1, 4), controls)
    tokens = torch.zeros(rows, 1, dtype=torch.int64)
    none = torch.full((rows, 1), -1)
    coin, final = torch.zeros(rows, 1).double(), torch.full((rows,), 0.6).double()
    hot = HotVocab.whole(4, device=CPU)
    for result in (
        accept_chain(target, tokens, law, hot, coin, final, accept_width=2),
        accept_tree(target, tokens, law, hot, none, none, coin, final, accept_width=2),
    ):
        assert result.accept_index.shape == (rows, 2)
        assert result.accept_index.dtype == torch.int64
        assert result.predict.tolist() == [[2]] * rows
        assert result.accept_lens.tolist() == [1] * rows
