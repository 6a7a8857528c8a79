"""prefill: the target reads new tokens of some requests.

T rows   B requests whose prompt ends here   V target vocabulary   X width fed to the draft
"""

from engine.attention.base import AttentionBackend
from engine.carriers import PrefillInput, PrefillOutput
from engine.models.base import Feed, LanguageModel
from shapecheck import Dims, contract


class Prefill:
    """Ragged and causal: any number of requests, any number of new tokens of each."""

    def __init__(
        self, *, dims: Dims, target: LanguageModel, attention: AttentionBackend, feed: Feed
    ) -> None:
        self.dims = dims
        self.target = target
        self.attention = attention
        self.feed = feed

    @contract(phase="prefill")
    def run(self, batch: PrefillInput) -> PrefillOutput:
        """The target's KV of these tokens is written; logits where a prompt ends."""
        plan = self.attention.plan_ragged(batch.work)
        hidden = self.target(batch.input_ids, batch.positions, plan)
        last_BH = hidden.rows_TH.index_select(0, batch.select_index)
        return PrefillOutput(logits=self.target.logits(last_BH), hidden_states=self.feed(hidden))
