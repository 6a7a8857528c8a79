"""Prompt lookup: proposes what followed the last time the newest tokens stood in a request.

B requests   N verify width, root included
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.carriers import BatchRows, DraftState, VerifyInput
from engine.proposers.base import Parts
from engine.proposers.chain import ChainProposer
from engine.proposers.ngram import NgramIndex
from engine.sampling.batch import BatchSampling
from engine.transfer import to_device
from shapecheck import contract


class NgramProposer(ChainProposer):
    """One index per table row, fed with the tokens the host has seen anyway."""

    may_pass = True

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._longest, self._shortest = parts.config.ngram_max, parts.config.ngram_min
        self._indices: dict[int, NgramIndex] = {}

    @contract(phase="draft_decode")
    def propose(self, state: DraftState, rows: BatchRows, sampling: BatchSampling) -> VerifyInput:
        count = self.dims["num_draft_tokens"] - 1
        found = [self._indices[row].propose(count).tokens for row in rows.rows_on_host]
        guesses_BN = torch.tensor(found, dtype=torch.int64).view(len(found), count)
        tokens_BN = torch.cat(
            (state.bonus_tokens[:, None], to_device(guesses_BN, self.device)), dim=1
        )
        return self.chain(tokens_BN, rows)

    def has_guess(self, rows: Sequence[int]) -> bool:
        return any(self._indices[row].propose(1).matched for row in rows)

    def observe(self, row: int, tokens: Sequence[int]) -> None:
        if row not in self._indices:
            self._indices[row] = NgramIndex(max_n=self._longest, min_n=self._shortest)
        self._indices[row].extend(tokens)

    def forget(self, row: int) -> None:
        self._indices.pop(row, None)
