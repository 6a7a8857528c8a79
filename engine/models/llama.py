"""CausalLM: the Llama architecture, which Qwen2 and Qwen3 are variants of.

T rows of the forward   H hidden size   X width of the hidden states fed to a draft   V vocabulary
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from engine.attention.base import AttentionPlan
from engine.models.base import Hidden, LanguageModel, Role
from engine.models.config import ModelConfig
from engine.models.layers.decoder import DecoderLayer
from engine.models.layers.embedding import Embedding, LmHead
from engine.models.layers.norm import RMSNorm
from engine.models.layers.rotary import Rotary
from engine.models.weights import Axis, WeightSlot, under


class CausalLM(LanguageModel):
    """Llama, Qwen2 and Qwen3; what differs between them is in the config.

    `aux_layers` names the layers whose inputs are kept for an EAGLE-3 draft, in that order.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        role: Role = "target",
        length: int | None = None,
        aux_layers: tuple[int, ...] = (),
    ) -> None:
        super().__init__()
        self.config = config
        self.aux_layers = aux_layers
        vocab, hidden = Axis(f"{role}_vocab", config.vocab), Axis(f"{role}_hidden", config.hidden)
        self.embedding = Embedding(vocab, hidden)
        self.rotary = Rotary(config, length=length or config.max_positions)
        self.layers = nn.ModuleList(
            DecoderLayer(config, role=role, layer=layer) for layer in range(config.layers)
        )
        self.norm = RMSNorm(hidden, eps=config.norm_eps)
        self.head = LmHead(vocab, hidden, tie=self.embedding if config.tied else None)

    def forward(self, ids_T: Tensor, positions_T: Tensor, plan: AttentionPlan) -> Hidden:
        """The last layer's rows after the final norm, and the aux rows if any are kept."""
        x_TH = self.embedding(ids_T)
        angles = self.rotary(positions_T, x_TH.dtype)
        kept: dict[int, Tensor] = {}
        for number, layer in enumerate(self.layers):
            if number in self.aux_layers:
                kept[number] = x_TH
            x_TH = layer(x_TH, angles, plan)
        aux_TX = torch.cat([kept[n] for n in self.aux_layers], dim=-1) if kept else None
        return Hidden(rows_TH=self.norm(x_TH), aux_TX=aux_TX)

    def logits(self, rows_TH: Tensor) -> Tensor:
        """(T, H) after the final norm -> (T, V) fp32."""
        return self.head(rows_TH)

    @property
    def redundant(self) -> frozenset[str]:
        """A tied head is the embedding; some tools save it all the same."""
        return frozenset({"lm_head.weight"}) if self.config.tied else frozenset()

    def weights(self) -> Iterator[WeightSlot]:
        """Slots named as in a Hugging Face checkpoint."""
        yield from under("model.embed_tokens", self.embedding.weights())
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, DecoderLayer)
            yield from under(f"model.layers.{number}", layer.weights())
        yield from under("model.norm", self.norm.weights())
        yield from under("lm_head", self.head.weights())
