"""One speculative iteration, top to bottom; the algorithm was chosen when the parts were built."""

from __future__ import annotations

from dataclasses import dataclass

from engine.carriers import BatchRows, DraftState, PrefillOutput, VerifyOutput
from engine.observe.metrics import Metrics
from engine.phases.commit import Commit
from engine.phases.prefill import Prefill
from engine.phases.verify import Verify
from engine.proposers.base import Proposer
from engine.sampling.batch import BatchSampling
from engine.scheduler.prompts import PromptBatch
from engine.transfer import HostCopy


@dataclass(slots=True, kw_only=True)
class Live:
    """The running requests, row by row; `state` and `rows.seq_lens` move with every iteration."""

    rows: BatchRows
    state: DraftState
    sampling: BatchSampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The phases of one engine."""

    prefill: Prefill
    proposer: Proposer
    verify: Verify
    commit: Commit
    metrics: Metrics

    def read(
        self, prompts: PromptBatch, sampling: BatchSampling
    ) -> tuple[PrefillOutput, DraftState]:
        """The prompts' tokens have their KV; the state is that of the prompts that end here."""
        with self.metrics.time("prefill"):
            target_input = prompts.target_input()
            output = self.prefill.run(target_input)
            bonus = sampling.first_tokens(output.logits, target_input.seq_lens)
        with self.metrics.time("draft extend"):
            draft_input = prompts.draft_input(output.hidden_states, bonus)
            return output, self.proposer.after_prefill(draft_input, sampling)

    def iterate(self, live: Live) -> tuple[HostCopy, VerifyOutput]:
        """Every request grows by its accepted tokens; with no requests each forward has no rows.

        The new tokens are on their way to the host while the draft still reads them.
        """
        with self.metrics.time("draft decode"):
            tree = self.proposer.propose(live.state, live.rows, live.sampling)
        with self.metrics.time("verify"):
            verified = self.verify.run(tree, live.sampling)
        with self.metrics.time("commit"):
            extend, emitted = self.commit.run(tree, verified, live.rows)
            tokens = emitted.to_host()
        with self.metrics.time("draft extend"):
            live.state = self.proposer.after_verify(extend, live.sampling)
        return tokens, verified
