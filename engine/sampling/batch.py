"""BatchSampling: what the live requests ask of the sampler, and what penalties need to know."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from engine.sampling.coins import Stream, coins
from engine.sampling.controls import BatchControls
from engine.sampling.draw import argmax, draw
from engine.sampling.filters import Truncate, sampling_law, truncate
from engine.sampling.penalties import TokenCounts, penalise
from shapecheck import carrier, contract, ids


@carrier
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSampling:
    """Parameters of every request; `counts` is None when nobody asks for a penalty."""

    controls: BatchControls
    counts: TokenCounts | None

    @classmethod
    @contract(phase="idle")
    def idle(cls, device: torch.device) -> "BatchSampling":
        """The sampling of no requests."""
        return cls(controls=BatchControls.of([], [], device=device), counts=None)

    @contract
    def penalised(
        self,
        logits_BNV: Float32[Tensor, "bs nodes target_vocab"],
        tokens_BN: Annotated[Int64[Tensor, "bs nodes"], ids("target")],
        mask_BNN: Bool[Tensor, "bs nodes nodes"],
    ) -> Float32[Tensor, "bs nodes target_vocab"]:
        """Logits of every node after the penalties for what stands before it."""
        if self.counts is None:
            return logits_BNV
        return penalise(logits_BNV, tokens_BN, mask_BNN, self.counts, self.controls)

    def choose(
        self,
        logits_BNV: Tensor,
        positions_BN: Tensor,
        *,
        coins: Callable[..., Tensor] = coins,
        draw: Callable[[Tensor, Tensor], Tensor] = draw,
        argmax: Callable[[Tensor], Tensor] = argmax,
        truncate: Truncate = truncate,
    ) -> Tensor:
        """(B, N) the target's token at each node; the chosen token stands at `positions`.

        The coin depends on seed and position alone, so a request draws the same tokens with and
        without speculation. Siblings share a coin: at most one node of a depth is ever asked.
        """
        if self.controls.all_greedy:
            return argmax(logits_BNV)
        rows, width, vocab = logits_BNV.shape
        seeds = self.controls.seeds.repeat_interleave(width)
        coins_R = coins(seeds, positions_BN.flatten(), Stream.TARGET, lanes=1).squeeze(1)
        law_BNV = sampling_law(logits_BNV, self.controls, truncate)
        return draw(law_BNV.reshape(-1, vocab), coins_R).view(rows, width)

    def first_tokens(self, logits_BV: Tensor, positions_B: Tensor) -> Tensor:
        """(B,) the token after each prompt, which will stand at `positions`."""
        logits_B1V = logits_BV.unsqueeze(1)
        # No path yet: a mask without a true entry counts no token as output.
        none_B11 = torch.zeros(len(logits_BV), 1, 1, dtype=torch.bool, device=logits_BV.device)
        nothing_B1 = torch.zeros(len(logits_BV), 1, dtype=torch.int64, device=logits_BV.device)
        logits_B1V = self.penalised(logits_B1V, nothing_B1, none_B11)
        return self.choose(logits_B1V, positions_B.unsqueeze(1)).squeeze(1)
