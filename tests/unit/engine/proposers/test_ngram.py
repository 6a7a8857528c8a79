"""Prompt lookup against a search through the whole history."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.proposers.ngram import NgramIndex


def search(history: list[int], max_n: int, min_n: int) -> tuple[int, int] | None:
    """(n-gram length, start of the continuation), the longest n-gram and its latest place."""
    for length in range(max_n, min_n - 1, -1):
        suffix = history[-length:]
        for end in range(len(history) - 1, length - 1, -1):
            if len(suffix) == length and history[end - length : end] == suffix:
                return length, end
    return None


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=24),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 24),
    st.integers(1, 7),
)
def test_agrees_with_a_search(history, first, second, cut, count):
    min_n, max_n = sorted((first, second))
    index = NgramIndex(history[:cut], max_n=max_n, min_n=min_n)
    index.extend(history[cut:])
    proposal = index.propose(count)
    found = search(history, max_n, min_n)
    assert len(proposal.tokens) == count
    if found is None:
        assert (proposal.matched, proposal.tokens) == (0, history[-1:] * count)
        return
    length, start = found
    extended = list(history)
    for offset in range(count):
        extended.append(extended[start + offset])
    assert (proposal.matched, proposal.tokens) == (length, extended[len(history) :])


@pytest.mark.parametrize("period", [1, 2, 5])
def test_a_periodic_text_is_continued_for_any_count(period):
    text = [token % period for token in range(2 * period + 40)]
    index = NgramIndex(text[: period + 1], max_n=3)
    assert index.propose(30).tokens == text[period + 1 : period + 31]


def test_the_longer_and_then_the_later_match_wins():
    index = NgramIndex([1, 2, 7, 2, 8, 2, 9, 1, 2], max_n=2)
    assert index.propose(2).tokens == [7, 2]
    assert NgramIndex([1, 2, 7, 2, 8, 2, 9, 2], max_n=1).propose(2).tokens == [9, 2]


@pytest.mark.parametrize(("max_n", "min_n"), [(0, 0), (2, 3), (3, 0)])
def test_lengths_out_of_order_say_what_to_choose(max_n, min_n):
    with pytest.raises(EngineError, match="choose 1 <= min_n <= max_n"):
        NgramIndex(max_n=max_n, min_n=min_n)


def test_an_empty_history_is_refused():
    with pytest.raises(EngineError, match="extend the index with the prompt first"):
        NgramIndex().propose(3)
