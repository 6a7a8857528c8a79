"""Running: the requests of the decode batch, on the host and as the phases see them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.carriers import BatchRows, DraftState
from engine.sampling import BatchControls, TokenCounts
from engine.sampling.batch import BatchSampling
from engine.scheduler.request import Request
from engine.step import Live
from engine.transfer import to_device


class Running:
    """Row i of every tensor belongs to `requests[i]`."""

    def __init__(self, state: DraftState, *, target_vocab: int, device: torch.device) -> None:
        self.target_vocab = target_vocab
        self.device = device
        self._set([], state)

    def join(self, requests: Sequence[Request], state: DraftState) -> None:
        """These requests run from now on; row i of `state` is that of requests[i]."""
        self._set([*self.requests, *requests], self._live.state.merge(state))

    def keep(self, requests: Sequence[Request]) -> None:
        """Only these requests run on, in their present order."""
        wanted = set(map(id, requests))
        kept = [row for row, one in enumerate(self.requests) if id(one) in wanted]
        if len(kept) == len(self.requests):
            return
        index = to_device(torch.tensor(kept, dtype=torch.int64), self.device)
        self._set([self.requests[row] for row in kept], self._live.state.filter(index))

    @property
    def penalised(self) -> bool:
        """Whether the next tokens follow from those the host has counted."""
        return self._live.sampling.counts is not None

    def live(self, *, unread: int = 0) -> Live:
        """What the next iteration works on; each request may have so many tokens more than the
        host has counted.
        """
        longest = max((one.computed for one in self.requests), default=0)
        self._live.rows.max_seq_len = longest + unread
        if self._live.sampling.counts is not None:
            self._live.sampling = sampling_of(self.requests, self.target_vocab, self.device)
        return self._live

    def _set(self, requests: list[Request], state: DraftState) -> None:
        live = Live(
            rows=self._rows(requests),
            state=state,
            sampling=sampling_of(requests, self.target_vocab, self.device),
        )
        # Together, once nothing can fail any more: row i of one is row i of the other.
        self.requests, self._live = requests, live

    def _rows(self, requests: Sequence[Request]) -> BatchRows:
        rows = [request.row for request in requests]
        lens = [request.computed for request in requests]
        return BatchRows(
            req_rows_index=to_device(torch.tensor(rows, dtype=torch.int64), self.device),
            seq_lens=to_device(torch.tensor(lens, dtype=torch.int64), self.device),
            max_seq_len=max(lens, default=0),
            rows_on_host=tuple(rows),
        )


def sampling_of(
    requests: Sequence[Request], target_vocab: int, device: torch.device
) -> BatchSampling:
    """What these requests ask; histories count up to the KV written, the root itself excluded."""
    controls = BatchControls.of(
        [request.params for request in requests],
        [request.seed for request in requests],
        device=device,
    )
    counts = None
    if controls.penalises:
        counts = TokenCounts.of(
            [request.prompt for request in requests],
            [request.tokens[len(request.prompt) : request.computed] for request in requests],
            target_vocab=target_vocab,
            device=device,
        )
    return BatchSampling(controls=controls, counts=counts)
