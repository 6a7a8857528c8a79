"""The emitted law equals the target's to 1e-12, by exact integration over draws and coins.

The verifier is a black box here. Its outcome is a step function of each coin, so bisection finds
every step to 2**-48; the draft's draws are enumerated with their probabilities. What is emitted
short of the full length is continued with the target's own law, and the result is compared with
the target's law of whole sequences.
"""

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.sampling import (
    BatchControls,
    HotVocab,
    SamplingParams,
    TreeLaw,
    accept_chain,
    accept_tree,
    draw,
    draw_root,
    draw_step,
    rejection,
)
from engine.tree import (
    TreeStructure,
    accept_greedy,
    build_structure,
    chain_structure,
    first_level,
    next_level,
    rank_scores,
    select_nodes,
)

CPU = torch.device("cpu")
LAST_COIN = 1 - 2.0**-53
TOLERANCE = 1e-12


def controls(rows: int) -> BatchControls:
    return BatchControls.of([SamplingParams()] * rows, [0] * rows, device=CPU)


def bisect(outcome, problems: int) -> torch.Tensor:
    """The coin below which `outcome(coins)` holds and from which on it does not, per problem."""
    low, high = torch.zeros(problems).double(), torch.ones(problems).double()
    for _ in range(48):
        middle = (low + high) / 2
        holds = outcome(middle)
        low, high = torch.where(holds, middle, low), torch.where(holds, high, middle)
    return (low + high) / 2


def static_tree(topk: int, num_steps: int, width: int) -> TreeStructure:
    """The structure of the engine's own fixed tree of drawn children, one request."""
    level, frontier = first_level(rank_scores(1, topk, device=CPU), torch.zeros(1, topk).long())
    levels = [level]
    for step in range(1, num_steps):
        level, frontier = next_level(
            frontier,
            rank_scores(topk, topk, device=CPU),
            torch.zeros(topk, topk).long(),
            step=step,
        )
        levels.append(level)
    selected = select_nodes(levels, torch.tensor([0]), num_draft_tokens=width)
    return build_structure(
        selected.parent_list, selected.top_scores_index, torch.tensor([0]), topk=topk
    )


@dataclass
class Case:
    """Pools of weights for p and q; the rows that hold after a prefix are picked by a hash of it.

    `hot` are the target ids of the draft's vocabulary. `same` makes p equal to q.
    """

    vocab: int
    hot: list[int]
    target_pool: list[list[int]]
    draft_pool: list[list[int]]
    same: bool

    def draft_logits(self, prefix: tuple[int, ...]) -> torch.Tensor:
        return torch.tensor(self.draft_pool[_hash(prefix) % len(self.draft_pool)]).double().log()

    def draft_law(self, prefix: tuple[int, ...]) -> torch.Tensor:
        """What the sampler makes of the logits, normalised in float64."""
        _, law = draw_root(self.draft_logits(prefix)[None], controls(1), torch.zeros(1, 1).double())
        return law.probs[0].double() / law.probs[0].double().sum()

    def target_law(self, prefix: tuple[int, ...]) -> torch.Tensor:
        if self.same:
            whole = torch.zeros(self.vocab).double()
            whole[self.hot] = self.draft_law(prefix)
            return whole
        weights = torch.tensor(self.target_pool[_hash(prefix) % len(self.target_pool)]).double()
        return weights / weights.sum()


def _hash(prefix: tuple[int, ...]) -> int:
    return sum((3 * place + 1) * (token + 1) for place, token in enumerate(prefix))


def parents_of(structure: TreeStructure) -> list[int]:
    mask = structure.tree_mask[0]
    return [max((i for i in range(j) if mask[j, i]), default=-1) for j in range(mask.shape[0])]


def draws(case: Case, parents: list[int]) -> list[tuple[list[int], float]]:
    """Every outcome of the draft's draws: target ids of nodes 1.. and the probability."""
    outcomes = [([], 1.0)]
    for node in range(1, len(parents)):
        grown = []
        for tokens, probability in outcomes:
            prefix = path_tokens(parents, tokens, parents[node])
            rest = case.draft_law(prefix).clone()
            unseen = case.draft_logits(prefix).clone()
            for sibling in range(1, node):
                if parents[sibling] == parents[node]:
                    earlier = case.hot.index(tokens[sibling - 1])
                    rest[earlier], unseen[earlier] = 0.0, -torch.inf
            if rest.sum() == 0:
                grown.append(([*tokens, case.hot[int(unseen.argmax())]], probability))
                continue
            for index, chance in enumerate((rest / rest.sum()).tolist()):
                if chance > 0:
                    grown.append(([*tokens, case.hot[index]], probability * chance))
        outcomes = grown
    return outcomes


def path_tokens(parents: list[int], tokens: list[int], node: int) -> tuple[int, ...]:
    """The drawn tokens from the root's child down to `node`."""
    path: list[int] = []
    while node > 0:
        path.insert(0, tokens[node - 1])
        node = parents[node]
    return tuple(path)


def emitted_law(
    case: Case, structure: TreeStructure, *, chain: bool
) -> dict[tuple[int, ...], float]:
    """The law of what one verification emits, integrated over draws and coins."""
    parents = parents_of(structure)
    width, vocab = len(parents), case.vocab
    outcomes = draws(case, parents)
    prefixes = [
        [path_tokens(parents, tokens, node) for node in range(width)] for tokens, _ in outcomes
    ]
    count = len(outcomes)
    target_probs = torch.stack(
        [torch.stack([case.target_law(prefix) for prefix in row]) for row in prefixes]
    )
    logits = torch.stack(
        [torch.stack([case.draft_logits(prefix) for prefix in row]) for row in prefixes]
    )
    _, root = draw_root(logits[:, 0], controls(count), torch.zeros(count, 1).double())
    _, step = draw_step(
        logits[:, 1:].flatten(0, 1),
        controls(count),
        torch.zeros(count * (width - 1), 1).double(),
    )
    columns = torch.arange(width).expand(count, width)
    law = TreeLaw.assemble(root, [step], columns)
    tokens = torch.tensor([[0, *tokens] for tokens, _ in outcomes])
    offsets = torch.tensor(case.hot) - torch.arange(len(case.hot))
    hot_vocab = HotVocab.from_offsets(offsets, target_vocab=vocab)

    accepts = [("accept", j, 0) for j in range(1, width)]
    finals = [("final", e, v) for e in range(width) for v in range(vocab - 1)]
    problems = accepts + finals
    mask = structure.tree_mask[0]
    # Coin 0 takes every node that can be taken, the last coin refuses all that can be refused.
    last_coin = torch.tensor(LAST_COIN, dtype=torch.float64)
    forced = torch.stack([torch.where(mask[node], 0.0, last_coin) for _, node, _ in problems])
    forced = forced.repeat(count, 1)
    row = torch.arange(count).repeat_interleave(len(problems))
    node = torch.tensor([node for _, node, _ in problems]).repeat(count)
    bound = torch.tensor([bound for _, _, bound in problems]).repeat(count)
    is_accept = torch.tensor([kind == "accept" for kind, _, _ in problems]).repeat(count)
    big_law, big_tokens, big_target = law.rows(row), tokens[row], target_probs[row]
    links = [
        table.expand(len(row), width) for table in (structure.next_child, structure.next_sibling)
    ]

    def outcome(coin: torch.Tensor) -> torch.Tensor:
        accept_coins = torch.where(
            is_accept.unsqueeze(1),
            forced.scatter(1, node.unsqueeze(1), coin.unsqueeze(1)),
            forced,
        )
        final_coins = torch.where(is_accept, 0.0, coin)
        inputs = (big_target, big_tokens, big_law, hot_vocab)
        if chain:
            result = accept_chain(*inputs, accept_coins, final_coins, accept_width=width)
        else:
            result = accept_tree(*inputs, *links, accept_coins, final_coins, accept_width=width)
        taken = (result.accept_index == node.unsqueeze(1)).any(dim=1)
        last = result.accept_index.amax(dim=1)
        final = result.predict.gather(1, last.unsqueeze(1)).squeeze(1)
        return torch.where(is_accept, taken, (last == node) & (final <= bound))

    steps = bisect(outcome, len(row)).view(count, len(problems))
    chance = torch.cat([torch.ones(count, 1), steps[:, : width - 1]], dim=1)
    below = steps[:, width - 1 :].view(count, width, vocab - 1)
    edges = torch.cat([torch.zeros(count, width, 1), below, torch.ones(count, width, 1)], dim=2)
    final = edges.diff(dim=2)

    law_of_output: dict[tuple[int, ...], float] = defaultdict(float)
    for outcome_row, (_, probability) in enumerate(outcomes):
        for end in range(width):
            reached = probability
            for j in range(1, width):
                if mask[end, j]:
                    reached *= float(chance[outcome_row, j])
                elif mask[end, parents[j]] and not any(
                    parents[k] == parents[j] and mask[end, k] for k in range(j)
                ):
                    # A child judged on the way: an earlier sibling of the path, or below its end.
                    reached *= 1 - float(chance[outcome_row, j])
            for token in range(vocab):
                emitted = (*prefixes[outcome_row][end], token)
                law_of_output[emitted] += reached * float(final[outcome_row, end, token])
    return law_of_output


def largest_error(case: Case, emitted: dict[tuple[int, ...], float], length: int) -> float:
    worst = 0.0
    laws = {
        prefix: case.target_law(prefix).tolist()
        for size in range(length)
        for prefix in itertools.product(range(case.vocab), repeat=size)
    }
    for sequence in itertools.product(range(case.vocab), repeat=length):
        got, wanted = 0.0, 1.0
        for size in range(length):
            wanted *= laws[sequence[:size]][sequence[size]]
        tail = 1.0
        for size in range(length, 0, -1):
            got += emitted.get(sequence[:size], 0.0) * tail
            tail *= laws[sequence[: size - 1]][sequence[size - 1]]
        worst = max(worst, abs(got - wanted))
    return worst


def rows(vocab: int):
    """Small integer weights: zeros, ties and point laws are common."""
    return st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 7]), min_size=vocab, max_size=vocab).filter(
        any
    )


@st.composite
def cases(draw_from, max_vocab: int):
    vocab = draw_from(st.integers(2, max_vocab))
    hot = draw_from(
        st.one_of(
            st.just(list(range(vocab))),
            st.lists(st.integers(0, vocab - 1), min_size=1, unique=True).map(sorted),
        )
    )
    return Case(
        vocab=vocab,
        hot=hot,
        target_pool=draw_from(st.lists(rows(vocab), min_size=1, max_size=3)),
        draft_pool=draw_from(st.lists(rows(len(hot)), min_size=1, max_size=3)),
        same=draw_from(st.integers(0, 4)) == 0,
    )


quick = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@quick
@given(cases(max_vocab=5), st.integers(2, 4))
def test_chain(case, width):
    structure = chain_structure(torch.tensor([0]), num_draft_tokens=width)
    emitted = emitted_law(case, structure, chain=True)
    assert largest_error(case, emitted, width) < TOLERANCE


@quick
@given(cases(max_vocab=4), st.sampled_from([(2, 1, 3), (3, 1, 4), (2, 2, 4), (2, 2, 5), (2, 2, 6)]))
def test_tree(case, shape):
    topk, num_steps, width = shape
    emitted = emitted_law(case, static_tree(topk, num_steps, width), chain=False)
    assert largest_error(case, emitted, num_steps + 1) < TOLERANCE


FULL = (
    Case(5, [0, 1, 2, 3, 4], [[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]], [[1, 1, 2, 3, 5]], False),
    Case(5, [0, 2, 3], [[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]], [[5, 2, 1], [0, 4, 1]], False),
    Case(5, [0, 1], [[0, 0, 1, 2, 1]], [[2, 1], [1, 3]], False),
    Case(5, [0, 1, 2, 3, 4], [[1, 1, 1, 1, 1]], [[2, 7, 1, 8, 2], [1, 0, 0, 0, 0]], True),
)


@pytest.mark.parametrize("case", FULL, ids=["whole", "hot", "disjoint", "equal"])
def test_chain_of_three_over_five_tokens(case):
    structure = chain_structure(torch.tensor([0]), num_draft_tokens=4)
    assert largest_error(case, emitted_law(case, structure, chain=True), 4) < TOLERANCE


@pytest.mark.parametrize("case", FULL, ids=["whole", "hot", "disjoint", "equal"])
@pytest.mark.parametrize("shape", [(2, 2, 4), (3, 1, 4)], ids=str)
def test_tree_over_five_tokens(case, shape):
    topk, num_steps, width = shape
    emitted = emitted_law(case, static_tree(topk, num_steps, width), chain=False)
    assert largest_error(case, emitted, num_steps + 1) < TOLERANCE


@pytest.mark.parametrize("chain", [True, False], ids=["chain", "tree"])
def test_a_missing_residual_is_seen(monkeypatch, chain):
    """Negative control: after a refusal the token comes from p itself."""
    monkeypatch.setattr(rejection, "_without", lambda left, whole, law: (left, whole))
    structure = static_tree(1 if chain else 2, 1, 2 if chain else 3)
    emitted = emitted_law(FULL[0], structure, chain=chain)
    assert largest_error(FULL[0], emitted, 2) > 1e-3


def test_a_wrong_draft_law_is_seen():
    """Negative control: the draws follow another law than the one the verifier is given."""

    class Lying(Case):
        def draft_law(self, prefix: tuple[int, ...]) -> torch.Tensor:
            return torch.full((len(self.hot),), 1 / len(self.hot), dtype=torch.float64)

    case = Lying(5, [0, 1, 2, 3, 4], [[3, 1, 4, 1, 5]], [[1, 1, 2, 3, 5]], False)
    emitted = emitted_law(case, static_tree(2, 1, 3), chain=False)
    assert largest_error(case, emitted, 2) > 1e-3


@quick
@given(cases(max_vocab=3), st.sampled_from([(2, 1, 3), (1, 2, 3), (2, 2, 5)]), st.randoms())
def test_matching_any_chosen_tree(case, shape, random):
    """Chosen candidates, whatever they are; the nodes of one depth share a coin."""
    topk, num_steps, width = shape
    structure = static_tree(topk, num_steps, width)
    parents = parents_of(structure)
    tokens = [0]
    for node in range(1, width):
        taken = {tokens[k] for k in range(1, node) if parents[k] == parents[node]}
        tokens.append(random.choice([t for t in range(case.vocab) if t not in taken] or [0]))
    laws = torch.stack(
        [case.target_law(path_tokens(parents, tokens[1:], node)) for node in range(width)]
    )
    depth = structure.positions[0]
    # Between two neighbouring steps of any law of a depth the outcome does not change.
    intervals = []
    for level in range(num_steps + 1):
        ends = torch.tensor([0.0, 1.0], dtype=torch.float64)
        steps = torch.cat([ends, laws[depth == level].cumsum(dim=1).flatten()])
        steps = steps.clamp(max=1.0).unique()
        middles = ((steps[1:] + steps[:-1]) / 2).tolist()
        intervals.append(list(zip(middles, steps.diff().tolist(), strict=True)))
    combinations = list(itertools.product(*intervals))
    middles = [[middle for middle, _ in one] for one in combinations]
    coin = torch.tensor(middles, dtype=torch.float64)[:, depth]
    count = len(combinations)
    drawn = draw(laws.repeat(count, 1), coin.flatten()).view(count, width)
    accepted = accept_greedy(
        torch.tensor([tokens]).expand(count, width),
        drawn,
        structure.tree_mask.expand(count, width, width),
        accept_width=num_steps + 1,
    )
    emitted: dict[tuple[int, ...], float] = defaultdict(float)
    for row, one in enumerate(combinations):
        path = [j for j in accepted.accept_index[row].tolist() if j >= 0]
        probability = math.prod(length for _, length in one)
        emitted[tuple(int(accepted.predict[row, j]) for j in path)] += probability
    assert largest_error(case, emitted, num_steps + 1) < TOLERANCE
