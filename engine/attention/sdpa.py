"""The reference backend: gathers a request's slots and calls torch's SDPA; CPU and CUDA.

B requests   T rows of the forward   R query rows per request   X prefix slots, padded
W slots beyond the prefix   Y = X + W   Q query heads   C key/value heads   E head width
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from engine.attention.base import AttentionBackend, AttentionPlan, Block, EmptyPlan, Ragged
from engine.kv.pool import KVPool
from shapecheck import contract


@dataclass(frozen=True, slots=True, kw_only=True)
class _Segment:
    """One request of a ragged forward: its rows and everything they may read."""

    start: int
    end: int
    slots_Y: Tensor
    mask_11RY: Tensor | None


class _RaggedPlan(AttentionPlan):
    def __init__(self, pool: KVPool, slots_T: Tensor, segments: list[_Segment]) -> None:
        self.pool = pool
        self.slots_T = slots_T
        self.segments = segments

    def attend(self, layer: int, q_TQE: Tensor, k_TCE: Tensor, v_TCE: Tensor) -> Tensor:
        self.pool.store(layer, self.slots_T, k_TCE, v_TCE)
        keys_ZCE, values_ZCE = self.pool.keys_ZCE[layer], self.pool.values_ZCE[layer]
        out_TQE = torch.empty_like(q_TQE)
        for segment in self.segments:
            rows = slice(segment.start, segment.end)
            k_YCE = keys_ZCE.index_select(0, segment.slots_Y)
            v_YCE = values_ZCE.index_select(0, segment.slots_Y)
            out_TQE[rows] = _attention(
                q_TQE[rows].transpose(0, 1).unsqueeze(0),
                k_YCE.transpose(0, 1).unsqueeze(0),
                v_YCE.transpose(0, 1).unsqueeze(0),
                segment.mask_11RY,
            )[0].transpose(0, 1)
        return out_TQE


class _BlockPlan(AttentionPlan):
    def __init__(
        self, pool: KVPool, slots_T: Tensor, read_slots: Tensor, mask_BRY: Tensor, requests: int
    ) -> None:
        self.pool = pool
        self.slots_T = slots_T
        self.read_slots = read_slots
        self.mask_B1RY = mask_BRY.unsqueeze(1)
        self.requests = requests

    def attend(self, layer: int, q_TQE: Tensor, k_TCE: Tensor, v_TCE: Tensor) -> Tensor:
        self.pool.store(layer, self.slots_T, k_TCE, v_TCE)
        heads, kv_heads, width = q_TQE.shape[1], k_TCE.shape[1], q_TQE.shape[2]
        size = (self.requests, self.mask_B1RY.shape[-1], kv_heads, width)
        k_BYCE = self.pool.keys_ZCE[layer].index_select(0, self.read_slots).view(size)
        v_BYCE = self.pool.values_ZCE[layer].index_select(0, self.read_slots).view(size)
        out_BQRE = _attention(
            q_TQE.view(self.requests, -1, heads, width).transpose(1, 2),
            k_BYCE.transpose(1, 2),
            v_BYCE.transpose(1, 2),
            self.mask_B1RY,
        )
        return out_BQRE.transpose(1, 2).reshape(q_TQE.shape)


class SdpaBackend(AttentionBackend):
    """Every later kernel is tested against this one."""

    def plan_ragged(self, work: Ragged) -> AttentionPlan:
        if not sum(work.extend_lens):
            return EmptyPlan()
        segments: list[_Segment] = []
        written: list[Tensor] = []
        start = 0
        for row, prefix, extend in zip(
            work.req_rows, work.prefix_lens, work.extend_lens, strict=True
        ):
            if not extend:
                continue
            slots_Y = self.table.slots_PM[row, : prefix + extend]
            mask_11RY = None if not prefix else _causal(prefix, extend, slots_Y.device)
            segments.append(
                _Segment(start=start, end=start + extend, slots_Y=slots_Y, mask_11RY=mask_11RY)
            )
            written.append(slots_Y[prefix:])
            start += extend
        return _RaggedPlan(self.pool, torch.cat(written), segments)

    @contract
    def plan_block(self, work: Block) -> AttentionPlan:
        requests = work.slots_BR.shape[0]
        if not requests:
            return EmptyPlan()
        prefix_BX = self.table.slots_PM[work.req_rows_B, : work.max_prefix]
        columns_X = torch.arange(work.max_prefix, device=prefix_BX.device)
        seen_BX = columns_X < work.prefix_lens_B[:, None]
        seen_BRX = seen_BX[:, None, :].expand(-1, work.mask_BRW.shape[1], -1)
        return _BlockPlan(
            self.pool,
            work.slots_BR.reshape(-1),
            torch.cat((prefix_BX, work.tail_slots_BW), dim=1).reshape(-1),
            torch.cat((seen_BRX, work.mask_BRW), dim=2),
            requests,
        )


@contract
def _attention(
    q_BQRE: Float[Tensor, "bs heads block_rows head_dim"],
    k_BCYE: Float[Tensor, "bs kv_heads window head_dim"],
    v_BCYE: Float[Tensor, "bs kv_heads window head_dim"],
    mask_B1RY: Bool[Tensor, "bs 1 block_rows window"] | None,
) -> Float[Tensor, "bs heads block_rows head_dim"]:
    """torch's SDPA; without a mask row r reads up to slot r."""
    return F.scaled_dot_product_attention(
        q_BQRE, k_BCYE, v_BCYE, attn_mask=mask_B1RY, is_causal=mask_B1RY is None, enable_gqa=True
    )


def _causal(prefix: int, extend: int, device: torch.device) -> Tensor:
    """(1, 1, extend, prefix + extend): row r sees the prefix and the new rows up to itself."""
    ones = torch.ones(1, 1, extend, prefix + extend, dtype=torch.bool, device=device)
    return ones.tril(diagonal=prefix)
