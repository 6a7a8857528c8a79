"""A draft/verify engine in miniature, EAGLE-3 with a tree: the subject of the trace tests.

Shape suffixes: B requests, K branches, N verify width, S depth, T rows of a flat batch, H hidden,
V vocabulary, M the draft's candidates. Weights are never read; only sizes, dtypes and ids matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class DraftState:
    """What crosses iterations: draft widths, one row a request."""

    topk_p_BK: Tensor
    topk_index_BK: Tensor
    hidden_BH: Tensor
    bonus_B: Tensor

    @classmethod
    def idle(cls, dims, draft_dtype) -> DraftState:
        """The same fields with no rows."""
        return cls(
            topk_p_BK=torch.empty((0, dims["topk"]), dtype=torch.float32),
            topk_index_BK=torch.empty((0, dims["topk"]), dtype=torch.int64),
            hidden_BH=torch.empty((0, dims["recurrent_hidden"]), dtype=draft_dtype),
            bonus_B=torch.empty((0,), dtype=torch.int64),
        )

    def merge(self, other: DraftState) -> DraftState:
        """Both batches, one after the other."""
        return DraftState(
            topk_p_BK=torch.cat([self.topk_p_BK, other.topk_p_BK]),
            topk_index_BK=torch.cat([self.topk_index_BK, other.topk_index_BK]),
            hidden_BH=torch.cat([self.hidden_BH, other.hidden_BH]),
            bonus_B=torch.cat([self.bonus_B, other.bonus_B]),
        )


class Attention(nn.Module):
    """Grouped-query attention over a pool of key/value slots."""

    def __init__(
        self, width_in: int, hidden: int, heads: int, kv_heads: int, head_dim: int
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim
        self.q = nn.Linear(width_in, heads * head_dim, bias=False)
        self.k = nn.Linear(width_in, kv_heads * head_dim, bias=False)
        self.v = nn.Linear(width_in, kv_heads * head_dim, bias=False)
        self.o = nn.Linear(heads * head_dim, hidden, bias=False)

    def forward(self, x_TH: Tensor, pool: Pool, slots_T: Tensor, mask_TL: Tensor) -> Tensor:
        """Attend from every row to every slot the mask admits."""
        q = self.q(x_TH).view(-1, self.heads, self.head_dim)
        pool.keys[slots_T] = self.k(x_TH).view(-1, self.kv_heads, self.head_dim)
        pool.values[slots_T] = self.v(x_TH).view(-1, self.kv_heads, self.head_dim)
        group = self.heads // self.kv_heads
        keys = pool.keys.repeat_interleave(group, dim=1).transpose(0, 1)
        values = pool.values.repeat_interleave(group, dim=1).transpose(0, 1)
        out = F.scaled_dot_product_attention(
            q.transpose(0, 1).unsqueeze(0), keys.unsqueeze(0), values.unsqueeze(0), mask_TL
        )
        return self.o(out.squeeze(0).transpose(0, 1).reshape(-1, self.heads * self.head_dim))


class Pool:
    """Key/value slots of one model."""

    def __init__(self, slots: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> None:
        self.keys = torch.zeros((slots, kv_heads, head_dim), dtype=dtype)
        self.values = torch.zeros((slots, kv_heads, head_dim), dtype=dtype)


class Target(nn.Module):
    """The target: embedding, one layer three times, head; hands out auxiliary hidden states."""

    def __init__(self, dims) -> None:
        super().__init__()
        hidden = dims["target_hidden"]
        self.num_aux = dims["num_aux"]
        self.embed = nn.Embedding(dims["target_vocab"], hidden)
        self.norm = nn.LayerNorm(hidden)
        self.attention = Attention(
            hidden, hidden, dims["target_heads"], dims["target_kv_heads"], dims["target_head_dim"]
        )
        self.up = nn.Linear(hidden, dims["target_ffn"])
        self.down = nn.Linear(dims["target_ffn"], hidden)
        self.head = nn.Linear(hidden, dims["target_vocab"])

    def forward(self, ids_T: Tensor, pool: Pool, slots_T: Tensor, mask_TL: Tensor):
        """Logits in float32 and the hidden states of the auxiliary layers side by side."""
        x_TH = self.embed(ids_T)
        aux = []
        for _ in range(self.num_aux):
            aux.append(x_TH)
            x_TH = x_TH + self.attention(self.norm(x_TH), pool, slots_T, mask_TL)
            x_TH = x_TH + self.down(F.silu(self.up(x_TH)))
        return self.head(x_TH).float(), torch.cat(aux, dim=-1)


class Draft(nn.Module):
    """An EAGLE-3 head: fuses target hidden states, recurs in its own width and vocabulary."""

    def __init__(self, dims) -> None:
        super().__init__()
        hidden = dims["draft_hidden"]
        self.target_width = dims["target_hidden"]
        self.fc = nn.Linear(dims["extend_hidden"], hidden)
        self.embed = nn.Embedding(dims["target_vocab"], hidden)
        self.attention = Attention(
            2 * hidden, hidden, dims["draft_heads"], dims["draft_kv_heads"], dims["draft_head_dim"]
        )
        self.head = nn.Linear(hidden, dims["draft_vocab"])
        self.d2t = torch.zeros(dims["draft_vocab"], dtype=torch.int64)

    def forward(self, ids_T, hidden_TH, pool: Pool, slots_T, mask_TL):
        """Logits over the draft vocabulary and the next recurrent hidden states."""
        x_TH = torch.cat([self.embed(ids_T), hidden_TH], dim=-1)
        x_TH = hidden_TH + self.attention(x_TH, pool, slots_T, mask_TL)
        return self.head(x_TH).float(), x_TH


class ExtendBuffers:
    """The static inputs of the draft-extend graph."""

    def __init__(self, dims, max_bs: int, target_dtype: torch.dtype) -> None:
        rows = max_bs * dims["num_draft_tokens"]
        self.hidden_TH = torch.zeros((rows, dims["extend_hidden"]), dtype=target_dtype)
        self.wide_TH = torch.zeros((rows, dims["num_aux"] * dims["draft_hidden"]))
        self.ids_T = torch.zeros((rows,), dtype=torch.int64)
        self.accept_lens_B = torch.zeros((max_bs,), dtype=torch.int32)

    def fill(self, hidden_TH: Tensor, ids_T: Tensor, accept_lens_B: Tensor):
        """The live rows, copied in and read back as the graph would."""
        rows = hidden_TH.shape[0]
        self.hidden_TH[:rows].copy_(hidden_TH)
        self.ids_T[:rows].copy_(ids_T)
        self.accept_lens_B[: len(accept_lens_B)].copy_(accept_lens_B)
        return self.hidden_TH[:rows], self.ids_T[:rows]


class Engine:
    """Phases over both models, one method each."""

    def __init__(self, dims, target_dtype: torch.dtype, draft_dtype: torch.dtype) -> None:
        self.dims, self.target_dtype, self.draft_dtype = dims, target_dtype, draft_dtype
        self.target = Target(dims).to(target_dtype)
        self.draft = Draft(dims).to(draft_dtype)
        slots = dims["num_slots"]
        self.target_pool = Pool(
            slots, dims["target_kv_heads"], dims["target_head_dim"], target_dtype
        )
        self.draft_pool = Pool(slots, dims["draft_kv_heads"], dims["draft_head_dim"], draft_dtype)
        self.buffers = ExtendBuffers(dims, dims["padded_bs"], target_dtype)

    def rows(self, count: int):
        """Slots and a mask for `count` rows."""
        slots = torch.zeros((count,), dtype=torch.int64)
        mask = torch.zeros((count, self.dims["num_slots"]), dtype=torch.bool)
        return slots, mask

    def prefill(self, ids_T: Tensor):
        """The target over a ragged prompt batch."""
        return self.target(ids_T, self.target_pool, *self.rows(ids_T.shape[0]))

    def draft_extend(self, ids_T: Tensor, hidden_TH: Tensor, last_B: Tensor) -> DraftState:
        """The draft over the target's hidden states; keeps the last row of each request."""
        fused_TH = self.draft.fc(hidden_TH.to(self.draft_dtype))
        logits_TV, hidden_TH = self.draft(
            ids_T, fused_TH, self.draft_pool, *self.rows(ids_T.shape[0])
        )
        topk_p, topk_index = torch.softmax(logits_TV[last_B], dim=-1).topk(self.dims["topk"])
        return DraftState(topk_p, topk_index, hidden_TH[last_B], ids_T[last_B])

    def to_target_ids(self, ids: Tensor) -> Tensor:
        """Draft ids as target ids; d2t holds offsets."""
        return ids + self.draft.d2t[ids]

    def draft_decode(self, state: DraftState):
        """num_steps-1 draft forwards; every candidate with its score and parent."""
        topk, bs = self.dims["topk"], state.topk_p_BK.shape[0]
        scores_BK = state.topk_p_BK
        tokens_BK = self.to_target_ids(state.topk_index_BK)
        hidden_TH = state.hidden_BH.repeat_interleave(topk, dim=0)
        score_list, token_list = [scores_BK], [tokens_BK]
        parents = [torch.full((bs, 1), -1, dtype=torch.int64)]
        for _ in range(self.dims["num_steps"] - 1):
            logits_TV, hidden_TH = self.draft(
                tokens_BK.reshape(-1), hidden_TH, self.draft_pool, *self.rows(bs * topk)
            )
            p_TK, index_TK = torch.softmax(logits_TV, dim=-1).topk(topk)
            spread = scores_BK.unsqueeze(2) * p_TK.view(bs, topk, topk)
            mapped = self.to_target_ids(index_TK).view(bs, topk * topk)
            scores_BK, best_BK = spread.flatten(1).topk(topk)
            tokens_BK = mapped.gather(1, best_BK)
            source = best_BK // topk + torch.arange(bs).unsqueeze(1) * topk
            hidden_TH = hidden_TH[source.reshape(-1)]
            score_list.append(spread.flatten(1))
            token_list.append(mapped)
            parents.append(best_BK // topk)
        return torch.cat(score_list, 1), torch.cat(token_list, 1), torch.cat(parents, 1)

    def build_tree(self, state: DraftState, scores_BM: Tensor, tokens_BM: Tensor):
        """The best num_draft_tokens-1 candidates behind the root."""
        width = self.dims["num_draft_tokens"]
        best = scores_BM.topk(width - 1).indices.sort(dim=-1).values
        chosen = tokens_BM.gather(1, best)
        return torch.cat([state.bonus_B.unsqueeze(1), chosen], dim=1)

    def verify(self, tokens_BN: Tensor):
        """The target over the tree; greedy acceptance."""
        bs, width = tokens_BN.shape
        ids_T = tokens_BN.reshape(-1)
        logits_TV, hidden_TH = self.target(ids_T, self.target_pool, *self.rows(bs * width))
        predict_BN = logits_TV.argmax(-1).view(bs, self.dims["num_draft_tokens"])
        accept_index = torch.full((bs, self.dims["accept_width"]), -1, dtype=torch.int64)
        accept_lens_B = (accept_index >= 0).sum(-1).to(torch.int32)
        return predict_BN, hidden_TH, accept_lens_B

    def step(self, state: DraftState) -> DraftState:
        """One iteration, top to bottom."""
        scores, tokens, _ = self.draft_decode(state)
        tokens_BN = self.build_tree(state, scores, tokens)
        predict_BN, hidden_TH, accept_lens_B = self.verify(tokens_BN)
        hidden_TH, ids_T = self.buffers.fill(hidden_TH, predict_BN.reshape(-1), accept_lens_B)
        width = self.dims["num_draft_tokens"]
        last_B = torch.arange(accept_lens_B.shape[0]) * width + accept_lens_B.long() - 1
        return self.draft_extend(ids_T, hidden_TH, last_B)


@torch.inference_mode()
def run(t, steps: int = 1) -> None:
    """Every phase under a trace: prefill, extend, idle, merge, then whole iterations."""
    engine = Engine(t.dims, t.dtype("target"), t.dtype("draft"))
    t.offset(engine.draft.d2t, "draft_vocab", "target_vocab")
    prompt = t.tensor("tokens", torch.int64, ids="target")
    _, hidden_TH = engine.prefill(prompt)
    fresh = engine.draft_extend(prompt, hidden_TH, t.tensor("bs", torch.int64))
    state = DraftState.idle(t.dims, t.dtype("draft")).merge(fresh)
    for _ in range(steps):
        state = engine.step(state)
