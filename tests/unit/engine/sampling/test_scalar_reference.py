"""The vectorised verifiers against float64 scalars in plain Python: same coins, same tokens."""

import math

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
    coins,
    draw_root,
    draw_step,
    sampling_law,
)
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

CPU = torch.device("cpu")
ROWS, VOCAB = 96, 12
HOT = [0, 1, 3, 4, 7, 8, 10, 11]
EDGES = (0.0, 1 - 2.0**-24, 1 - 2.0**-53)


def scalar_draw(weights: list[float], coin: float) -> int:
    threshold, running = coin * sum(weights), 0.0
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
            if sum(reduced) > 0:
                left = [w / sum(reduced) for w in reduced]
        else:
            predict[node] = scalar_draw(left, final)
            return path, predict


def random_logits(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Logits of which a third is impossible; the last token never is."""
    logits = torch.randn(shape, generator=generator) * 2
    cut = torch.rand(shape, generator=generator) < 0.33
    cut[..., -1] = False
    return logits.masked_fill(cut, -torch.inf)


def random_coins(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Uniform coins, a third of them at an edge."""
    values = torch.rand(shape, generator=generator, dtype=torch.float64)
    edges = torch.tensor(EDGES, dtype=torch.float64)
    edge = edges[torch.randint(len(EDGES), shape, generator=generator)]
    return torch.where(torch.rand(shape, generator=generator) < 0.33, edge, values)


def setup(topk: int, num_steps: int, width: int, *, is_hot: bool, seed: int):
    """A drawn batch whose last rows are padding: no law, no target weight to speak of."""
    generator = torch.Generator().manual_seed(seed)
    vocab = len(HOT) if is_hot else VOCAB
    params = [SamplingParams(temperature=(0.0, 0.7, 1.0)[row % 3]) for row in range(ROWS)]
    controls = BatchControls.of(params, range(ROWS), device=CPU)
    hot = (
        HotVocab.from_offsets(torch.tensor(HOT) - torch.arange(len(HOT)), target_vocab=VOCAB)
        if is_hot
        else HotVocab.whole(VOCAB, device=CPU)
    )
    at = torch.zeros(ROWS, dtype=torch.int64)
    draft_coins = coins(controls.seeds, at, Stream.DRAFT, lanes=topk)
    tokens, root = draw_root(random_logits(generator, ROWS, vocab), controls, draft_coins)
    level, frontier = first_level(rank_scores(ROWS, topk, device=CPU), hot.target_ids(tokens))
    levels, steps = [level], []
    for step in range(1, num_steps):
        rows = ROWS * topk
        tokens, law = draw_step(
            random_logits(generator, rows, vocab),
            controls,
            torch.rand(rows, topk, generator=generator, dtype=torch.float64),
        )
        level, frontier = next_level(
            frontier, rank_scores(rows, topk, device=CPU), hot.target_ids(tokens), step=step
        )
        levels.append(level)
        steps.append(law)
    selected = select_nodes(levels, at, num_draft_tokens=width)
    structure = build_structure(selected.parent_list, selected.top_scores_index, at, topk=topk)
    # Some candidates are foreign to their law (q = 0): they are passed over, never judged.
    foreign = torch.rand(ROWS, width, generator=generator) < 0.15
    anything = torch.randint(VOCAB, (ROWS, width), generator=generator)
    draft_tokens = torch.where(foreign, anything, selected.draft_tokens)
    columns = law_columns(selected.parent_list, selected.top_scores_index)
    law = TreeLaw.assemble(root, steps, columns)
    padded = law.rows(torch.arange(ROWS - 4)).copied_into(torch.empty_like(law.probs))
    target = sampling_law(random_logits(generator, ROWS, width, VOCAB), controls)
    # Sometimes p = q exactly.
    same = torch.rand(ROWS, width, 1, generator=generator) < 0.2
    spread = hot.to_target(padded.probs.flatten(0, 1)).view(ROWS, width, VOCAB)
    has_law = padded.probs.sum(dim=2, keepdim=True) > 0
    target = torch.where(same & has_law, spread, target)
    accept = random_coins(generator, ROWS, width)
    final = random_coins(generator, ROWS)
    return hot, draft_tokens, structure, padded, target, accept, final


def expected(hot, tokens, structure, law, target, accept, final, accept_width):
    for b in range(ROWS):
        children: list[list[int]] = []
        for node in range(tokens.shape[1]):
            child, found = int(structure.next_child[b, node]), []
            while child >= 0:
                found.append(child)
                child = int(structure.next_sibling[b, child])
            children.append(found)
        path, predict = scalar_reject(
            target[b].double().tolist(),
            tokens[b].tolist(),
            law.probs[b].double().tolist(),
            hot.hot.tolist(),
            children,
            accept[b].tolist(),
            float(final[b]),
        )
        yield path + [-1] * (accept_width - len(path)), predict, len(path)


SHAPES = [(1, 1, 2), (1, 3, 4), (2, 2, 6), (3, 2, 8), (4, 3, 16)]


@pytest.mark.parametrize("is_hot", [False, True], ids=["whole", "hot"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_token_identical(shape, is_hot):
    topk, num_steps, width = shape
    batch = setup(topk, num_steps, width, is_hot=is_hot, seed=topk + num_steps)
    hot, tokens, structure, law, target, accept, final = batch
    accept_width = num_steps + 1
    wanted = list(expected(*batch, accept_width))
    verifiers = [
        accept_tree(
            target,
            tokens,
            law,
            hot,
            structure.next_child,
            structure.next_sibling,
            accept,
            final,
            accept_width=accept_width,
        )
    ]
    if topk == 1:
        inputs = (target, tokens, law, hot, accept, final)
        verifiers.append(accept_chain(*inputs, accept_width=accept_width))
    for result in verifiers:
        assert result.accept_index.tolist() == [path for path, _, _ in wanted]
        assert result.predict.tolist() == [predict for _, predict, _ in wanted]
        assert result.accept_lens.tolist() == [length for _, _, length in wanted]
        assert result.accept_lens.dtype == torch.int32
    # The batch is worth something only if paths of every length occur.
    assert {length for _, _, length in wanted} == set(range(1, accept_width + 1))


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
    tokens, root = draw_root(torch.full((1, 4), broken), controls, torch.zeros(1, 1).double())
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
