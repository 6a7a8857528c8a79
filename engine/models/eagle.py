"""EAGLE-1 and EAGLE-3 heads: drafts that read the target's hidden states.

T rows   H draft hidden   X width of the target's hidden states (num_aux * Ht)
R recurrent width (= H)   Vd draft vocabulary   Vt target vocabulary
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from engine.attention.base import AttentionPlan
from engine.models.base import DraftModel, DraftRows
from engine.models.eagle_config import EagleConfig
from engine.models.layers.attention import Attention
from engine.models.layers.decoder import DecoderLayer
from engine.models.layers.embedding import Embedding, LmHead
from engine.models.layers.linear import Linear
from engine.models.layers.mlp import Mlp
from engine.models.layers.norm import RMSNorm
from engine.models.layers.rotary import Angles, Rotary
from engine.models.llama import CausalLM
from engine.models.weights import Axis, WeightSlot, under


class Eagle1(DraftModel):
    """fc(embed, hidden) through decoder layers; embedding and head are the target's own."""

    def __init__(self, config: EagleConfig, target: CausalLM, *, length: int) -> None:
        super().__init__()
        self.config = config
        hidden = Axis("draft_hidden", config.hidden)
        both = Axis("draft_hidden+extend_hidden", config.hidden + config.extend_width)
        # In a tuple: modules of the target must not appear among this head's parameters.
        self._target = (target.embedding, target.head)
        self.fc = Linear(both, {"fc": hidden}, bias=config.fc_bias)
        self.rotary = Rotary(config, length=length)
        self.layers = nn.ModuleList(
            DecoderLayer(config, role="draft", layer=layer, norm_input=layer > 0)
            for layer in range(config.layers)
        )

    def project(self, hidden_TX: Tensor) -> Tensor:
        """The target's rows as they are: both loops feed the same width."""
        return hidden_TX

    def forward(
        self, ids_T: Tensor, positions_T: Tensor, hidden_TR: Tensor | None, plan: AttentionPlan
    ) -> DraftRows:
        """Rows that predict the next token, and are themselves the next hidden state."""
        assert hidden_TR is not None, "an EAGLE head is always fed hidden states"
        embedding, _ = self._target
        x_TH = self.fc(torch.cat((embedding(ids_T), hidden_TR), dim=-1))
        angles = self.rotary(positions_T, x_TH.dtype)
        for layer in self.layers:
            x_TH = layer(x_TH, angles, plan)
        return DraftRows(rows_TH=x_TH, recurrent_TR=x_TH)

    def logits(self, rows_TH: Tensor) -> Tensor:
        """(T, H) -> (T, Vd) fp32 with the target's head."""
        _, head = self._target
        return head(rows_TH)

    def weights(self) -> Iterator[WeightSlot]:
        """Slots named as in a published head."""
        yield from self.fc.weights()
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, DecoderLayer)
            yield from under(f"layers.{number}", layer.weights())


class Eagle3Layer(nn.Module):
    """A decoder layer whose attention reads embedding and hidden state side by side (2*Hd)."""

    def __init__(self, config: EagleConfig) -> None:
        super().__init__()
        hidden, both = (
            Axis("draft_hidden", config.hidden),
            Axis("2*draft_hidden", 2 * config.hidden),
        )
        self.input_norm = RMSNorm(hidden, eps=config.norm_eps)
        self.hidden_norm = RMSNorm(hidden, eps=config.norm_eps)
        self.attention = Attention(config, role="draft", layer=0, width=both)
        self.post_norm = RMSNorm(hidden, eps=config.norm_eps)
        self.mlp = Mlp(config, role="draft")

    def forward(
        self, embedded_TH: Tensor, hidden_TR: Tensor, angles: Angles, plan: AttentionPlan
    ) -> Tensor:
        """(T, H) and (T, R) -> (T, H); the residual stream starts at the hidden state."""
        both = torch.cat((self.input_norm(embedded_TH), self.hidden_norm(hidden_TR)), dim=-1)
        x_TH = hidden_TR + self.attention(both, angles, plan)
        return x_TH + self.mlp(self.post_norm(x_TH))

    def weights(self) -> Iterator[WeightSlot]:
        """Slots named as in a head's `midlayer`."""
        yield from under("input_layernorm", self.input_norm.weights())
        yield from under("hidden_norm", self.hidden_norm.weights())
        yield from under("self_attn", self.attention.weights())
        yield from under("post_attention_layernorm", self.post_norm.weights())
        yield from under("mlp", self.mlp.weights())


class Eagle3(DraftModel):
    """One layer over fc(aux hidden states), its own head over a vocabulary of its own.

    `d2t` holds offsets: draft id d means target id d + d2t[d].
    """

    d2t: Tensor

    def __init__(self, config: EagleConfig, target: CausalLM, *, length: int) -> None:
        super().__init__()
        self.config = config
        hidden, vocab = Axis("draft_hidden", config.hidden), Axis("draft_vocab", config.draft_vocab)
        fed = Axis("num_aux*target_hidden", config.extend_width)
        self.norm_output = config.norm_output
        shares = config.hidden == target.config.hidden
        self.own_embedding = (
            None if shares else Embedding(Axis("target_vocab", config.vocab), hidden)
        )
        self._shared = (target.embedding,)
        self.fc = Linear(fed, {"fc": hidden}, bias=config.fc_bias)
        self.rotary = Rotary(config, length=length)
        self.layer = Eagle3Layer(config)
        self.norm = RMSNorm(hidden, eps=config.norm_eps)
        self.head = LmHead(vocab, hidden)
        self.register_buffer("d2t", torch.zeros(config.draft_vocab, dtype=torch.int64))

    @property
    def embedding(self) -> Embedding:
        """The head's own table, or the target's when both have one hidden size."""
        return self._shared[0] if self.own_embedding is None else self.own_embedding

    def project(self, hidden_TX: Tensor) -> Tensor:
        """(T, X) of the target -> (T, R) of the draft."""
        return self.fc(hidden_TX)

    def forward(
        self, ids_T: Tensor, positions_T: Tensor, hidden_TR: Tensor | None, plan: AttentionPlan
    ) -> DraftRows:
        """Normalised rows for the head; the recurrent state is taken before the norm by default."""
        assert hidden_TR is not None, "an EAGLE head is always fed hidden states"
        embedded_TH = self.embedding(ids_T)
        angles = self.rotary(positions_T, embedded_TH.dtype)
        x_TH = self.layer(embedded_TH, hidden_TR, angles, plan)
        rows_TH = self.norm(x_TH)
        return DraftRows(rows_TH=rows_TH, recurrent_TR=rows_TH if self.norm_output else x_TH)

    def logits(self, rows_TH: Tensor) -> Tensor:
        """(T, H) -> (T, Vd) fp32."""
        return self.head(rows_TH)

    def weights(self) -> Iterator[WeightSlot]:
        """Slots named as in a published head."""
        if self.own_embedding is not None:
            yield from under("embed_tokens", self.own_embedding.weights())
        yield from self.fc.weights()
        yield from under("midlayer", self.layer.weights())
        yield from under("norm", self.norm.weights())
        yield from under("lm_head", self.head.weights())
        yield WeightSlot(name="d2t", axes=(self.head.vocab,), destination=self.d2t)
