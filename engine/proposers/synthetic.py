"""Synthetic acceptance: candidates are kept by a coin, so that speed can be measured at any rate.

What comes out is not the target's text. It is for random weights alone, whose draft knows nothing
of its target, and everything that reports it says so.

B requests   N verify width, root included   V target vocabulary   P rows of coins
"""

from __future__ import annotations

import torch
from jaxtyping import Int32
from torch import Tensor

from engine.carriers import VerifyInput
from engine.errors import EngineError
from engine.ops import TreeOps
from engine.proposers.base import Parts
from engine.proposers.standalone import StandaloneProposer
from engine.sampling.batch import BatchSampling
from engine.tree import Accepted
from shapecheck import Dims

# Rows of coins, and how far apart two neighbouring seeds begin among them.
_ROWS, _STRIDE = 4096, 1031


class AcceptSynthetic:
    """Keeps every node of a chain with one probability, then goes on with the target's token."""

    def __init__(self, dims: Dims, ops: TreeOps, probability: float, device: torch.device) -> None:
        if not 0 <= probability <= 1:
            raise EngineError(f"acceptance {probability} is no probability; choose one in [0, 1]")
        if dims["topk"] != 1:
            raise EngineError(
                f"topk is {dims['topk']}, synthetic acceptance keeps the nodes of a chain; "
                "leave topk at 1"
            )
        self.ops = ops
        # Drawn once: counters and rounds in every iteration would cost as much as a draft step.
        self.lens_P = _path_lengths(dims["num_draft_tokens"], probability).to(device)
        self.node_N = torch.arange(dims["num_draft_tokens"], device=device)

    def __call__(self, logits_BNV: Tensor, draft: VerifyInput, sampling: BatchSampling) -> Accepted:
        """A node is kept if its coin and those of all its ancestors say so.

        A row of coins follows from the request's seed and its root's position. The target's choice
        is computed at every node, as it is for real candidates.
        """
        tokens_BN = draft.draft_tokens
        logits_BNV = sampling.penalised(logits_BNV, tokens_BN, draft.tree_mask)
        chosen_BN = sampling.choose(
            logits_BNV,
            draft.positions + 1,
            coins=self.ops.coins,
            draw=self.ops.draw,
            argmax=self.ops.argmax,
            truncate=self.ops.truncate,
        )
        node_N = self.node_N
        row_B = (draft.seq_lens + _STRIDE * sampling.controls.seeds) % _ROWS
        lens_B = self.lens_P.index_select(0, row_B)
        kept_BN = node_N < lens_B[:, None]
        # Inside the path the next candidate stands for what the target would have said.
        inside_BN = node_N < lens_B[:, None] - 1
        said_BN = torch.where(inside_BN, tokens_BN.roll(-1, dims=1), chosen_BN)
        return Accepted(
            predict=said_BN.where(kept_BN, 0),
            accept_index=node_N.expand_as(tokens_BN).where(kept_BN, -1),
            accept_lens=lens_B,
        )


def synthetic(probability: float) -> type[StandaloneProposer]:
    """A stand-alone proposer whose candidates are kept with this probability."""

    class Synthetic(StandaloneProposer):
        """Drafts as always; only the verdict is a coin's."""

        def __init__(self, parts: Parts) -> None:
            super().__init__(parts)
            self.accept = AcceptSynthetic(parts.dims, parts.ops, probability, parts.device)

    return Synthetic


def _path_lengths(width: int, probability: float) -> Int32[Tensor, "coin_rows"]:
    """Nodes of a chain that are kept before the first coin that says no, the root always."""
    generator = torch.Generator().manual_seed(0)
    chances_PN = torch.full((_ROWS, width - 1), probability)
    passed_PN = torch.bernoulli(chances_PN, generator=generator).int()
    return 1 + passed_PN.cumprod(dim=1).sum(dim=1, dtype=torch.int32)
