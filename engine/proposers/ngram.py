"""Prompt lookup: what followed the last time the newest tokens stood in a request's history.

Plain Python on the host token list, one index per request: a token costs `max_n - min_n + 1`
dictionary writes when it is appended, a proposal as many look-ups, whatever the history's length.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import EngineError


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramProposal:
    """`tokens` to verify behind the newest one; `matched` is the n-gram's length, 0 for padding."""

    tokens: list[int]
    matched: int


class NgramIndex:
    """One request's history, prompt included, and where each of its n-grams last ended."""

    def __init__(self, tokens: Sequence[int] = (), *, max_n: int = 3, min_n: int = 1) -> None:
        if not 1 <= min_n <= max_n:
            raise EngineError(
                f"n-gram lengths min_n={min_n}, max_n={max_n}: choose 1 <= min_n <= max_n, for "
                "example min_n=1, max_n=3"
            )
        self._lengths = range(max_n, min_n - 1, -1)
        self._history: list[int] = []
        self._ends: dict[tuple[int, ...], int] = {}
        self.extend(tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append committed tokens; the newest one, not yet verified by a successor, is the root."""
        for token in tokens:
            # An n-gram is entered once it has a continuation, so a match never finds itself.
            for length in self._lengths:
                if length <= len(self._history):
                    self._ends[tuple(self._history[-length:])] = len(self._history)
            self._history.append(token)

    def propose(self, count: int) -> NgramProposal:
        """`count` tokens that followed the latest earlier occurrence of the longest known suffix.

        A continuation that reaches the end of the history goes on with what it has proposed, so a
        periodic text is continued for any `count`. Without a match the newest token is repeated:
        any token of the vocabulary is a lossless guess. Raises EngineError on an empty history.
        """
        if not self._history:
            raise EngineError("no history to propose from: extend the index with the prompt first")
        for length in self._lengths:
            if length <= len(self._history):
                start = self._ends.get(tuple(self._history[-length:]))
                if start is not None:
                    period = len(self._history) - start
                    tokens = self._history[start : start + count]
                    while len(tokens) < count:
                        tokens.append(tokens[-period])
                    return NgramProposal(tokens=tokens, matched=length)
        return NgramProposal(tokens=self._history[-1:] * count, matched=0)
