"""verify: the target judges a draft tree.

B requests   N verify width, root included   V target vocabulary   X width fed to the draft
"""

from collections.abc import Callable

from engine.attention.base import AttentionBackend, Block
from engine.carriers import TargetRows, VerifyInput, VerifyOutput, VerifyRows
from engine.models.base import Feed, LanguageModel
from engine.phases.accept import Accept
from engine.sampling.batch import BatchSampling
from shapecheck import Dims, contract


class VerifyForward:
    """The part of verify that a graph replays: one target forward of B*N rows."""

    def __init__(self, *, target: LanguageModel, attention: AttentionBackend, feed: Feed) -> None:
        self.target = target
        self.attention = attention
        self.feed = feed

    def __call__(self, draft: VerifyRows) -> TargetRows:
        """Logits and hidden states of every node; its KV is in its slot."""
        plan = self.attention.plan_block(
            Block(
                req_rows_B=draft.req_rows_index,
                prefix_lens_B=draft.seq_lens,
                slots_BR=draft.slots,
                tail_slots_BW=draft.slots,
                mask_BRW=draft.tree_mask,
                max_prefix=draft.max_seq_len,
            )
        )
        rows, width = draft.draft_tokens.shape
        hidden = self.target(draft.draft_tokens.flatten(), draft.positions.flatten(), plan)
        logits = self.target.logits(hidden.rows_TH)
        fed = self.feed(hidden)
        return TargetRows(
            logits=logits.view(rows, width, logits.shape[-1]),
            hidden_states=None if fed is None else fed.view(rows, width, fed.shape[-1]),
        )


class Verify:
    """One target forward and the acceptance of its verdict."""

    def __init__(
        self, *, dims: Dims, forward: Callable[[VerifyRows], TargetRows], accept: Accept
    ) -> None:
        self.dims = dims
        self.forward = forward
        self.accept = accept

    @contract(phase="verify")
    def run(self, draft: VerifyInput, sampling: BatchSampling) -> VerifyOutput:
        """The accepted path of each tree; nothing is committed yet."""
        rows = self.forward(VerifyRows.of(draft))
        accepted = self.accept(rows.logits, draft, sampling)
        return VerifyOutput(
            logits=rows.logits,
            hidden_states=rows.hidden_states,
            predict=accepted.predict,
            accept_index=accepted.accept_index,
            accept_lens=accepted.accept_lens,
        )
