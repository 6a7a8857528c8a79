"""A draft/verify worker in miniature: what crosses a phase is a carrier, and is checked there.

Read it top to bottom: the carriers say what crosses, the workers are the phases, `serve` is the
schedule of one rank.
"""
# B requests   T prompt tokens   N verify width, root included   S draft depth
# Ht, Hd hidden sizes of target and draft   V vocabulary

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Float32, Int32, Int64
from torch import Tensor

from shapecheck import Dims, carrier, contract, dtype, ids
from shapecheck.demo.models import DraftModel, TargetModel


@carrier
@dataclass(slots=True)
class ExtendInput:
    """From the target to the draft: hidden states of the TARGET's width, and the newest token."""

    hidden_states: Annotated[Float32[Tensor, "bs target_hidden"], dtype("target")]
    bonus_tokens: Annotated[Int64[Tensor, "bs"], ids("target")]

    def merge(self, arrived: "ExtendInput") -> "ExtendInput":
        """The rows of this batch followed by those that arrived."""
        return ExtendInput(
            hidden_states=torch.cat([self.hidden_states, arrived.hidden_states]),
            bonus_tokens=torch.cat([self.bonus_tokens, arrived.bonus_tokens]),
        )


@carrier
@dataclass(slots=True)
class DraftState:
    """From one draft step to the next: hidden states of the DRAFT's width, and the guess."""

    hidden_states: Annotated[Float32[Tensor, "bs recurrent_hidden"], dtype("draft")]
    tokens: Annotated[Int64[Tensor, "bs"], ids("draft")]


@carrier
@dataclass(slots=True)
class VerifyOutput:
    """What the target makes of a draft, with the next iteration's input inside."""

    predict: Annotated[Int64[Tensor, "bs num_draft_tokens"], ids("target")]
    accept_lens: Int32[Tensor, "bs"]
    next_input: ExtendInput


class TargetWorker:
    """Runs the target: prefill and verify."""

    def __init__(self, dims: Dims) -> None:
        self.dims = dims
        self.model = TargetModel(dims)

    @contract(phase="prefill")
    def prefill(
        self,
        prompts: Annotated[Int64[Tensor, "bs tokens"], ids("target")],
        written: Bool[Tensor, "bs tokens"],
    ) -> ExtendInput:
        """Hidden states after prompts padded on the left, and the token that follows each."""
        hidden_BHt = torch.zeros(len(prompts), self.dims["target_hidden"])
        logits_BV = torch.zeros(len(prompts), self.dims["target_vocab"])
        for ids_B, written_B in zip(prompts.unbind(1), written.unbind(1), strict=True):
            after_BHt, logits_BV = self.model.forward(ids_B, hidden_BHt)
            hidden_BHt = torch.where(written_B[:, None], after_BHt, hidden_BHt)
        return ExtendInput(hidden_states=hidden_BHt, bonus_tokens=logits_BV.argmax(-1))

    @contract(phase="verify")
    def verify(
        self,
        batch: ExtendInput,
        draft: Annotated[Int64[Tensor, "bs num_steps"], ids("target")],
    ) -> VerifyOutput:
        """The longest prefix of each draft that the target itself would have written."""
        tokens_BN = torch.cat([batch.bonus_tokens[:, None], draft], dim=1)
        hidden_BHt, steps, guesses = batch.hidden_states, list[Tensor](), list[Tensor]()
        for ids_B in tokens_BN.unbind(1):
            hidden_BHt, logits_BV = self.model.forward(ids_B, hidden_BHt)
            steps.append(hidden_BHt)
            guesses.append(logits_BV.argmax(-1))
        predict_BN = torch.stack(guesses, dim=1)
        agreed_BS = (predict_BN[:, :-1] == draft).long().cumprod(dim=1)
        last_B = agreed_BS.sum(dim=1)
        rows_B = torch.arange(len(last_B))
        return VerifyOutput(
            predict=predict_BN,
            accept_lens=(last_B + 1).int(),
            next_input=ExtendInput(
                hidden_states=torch.stack(steps, dim=1)[rows_B, last_B],
                bonus_tokens=predict_BN[rows_B, last_B],
            ),
        )


class DraftWorker:
    """Runs the draft: the extend phase, then the remaining steps of the chain."""

    def __init__(self, dims: Dims) -> None:
        self.dims = dims
        self.model = DraftModel(dims)

    @contract(phase="draft_extend")
    def idle_input(self) -> ExtendInput:
        """The placeholder of a rank without requests: no rows, and the width of live batches."""
        return ExtendInput(
            hidden_states=torch.zeros(0, self.dims["target_hidden"]),
            bonus_tokens=torch.zeros(0, dtype=torch.int64),
        )

    @contract(phase="draft_extend")
    def extend(self, batch: ExtendInput) -> DraftState:
        """The first guess of each request, from the target's hidden states."""
        hidden_BHd, logits_BV = self.model.extend(batch.bonus_tokens, batch.hidden_states)
        return DraftState(hidden_states=hidden_BHd, tokens=logits_BV.argmax(-1))

    @contract(phase="draft_decode")
    def decode(self, state: DraftState) -> DraftState:
        """One more guess of each request, from the draft's own hidden states."""
        hidden_BHd, logits_BV = self.model.forward(state.tokens, state.hidden_states)
        return DraftState(hidden_states=hidden_BHd, tokens=logits_BV.argmax(-1))


class MistakenDraftWorker(DraftWorker):
    """The same worker with one size taken from the wrong model, as a real engine once had it."""

    @contract(phase="draft_extend")
    def idle_input(self) -> ExtendInput:
        """The mistake: nothing here looks wrong, and nothing fails until requests arrive."""
        return ExtendInput(
            hidden_states=torch.zeros(0, self.dims["draft_hidden"]),
            bonus_tokens=torch.zeros(0, dtype=torch.int64),
        )


def iterate(target: TargetWorker, draft: DraftWorker, batch: ExtendInput) -> VerifyOutput:
    """One speculative iteration: extend, draft, verify."""
    state = draft.extend(batch)
    guesses = [state.tokens]
    for _ in range(draft.dims["num_steps"] - 1):
        state = draft.decode(state)
        guesses.append(state.tokens)
    return target.verify(batch, torch.stack(guesses, dim=1))


def arrive(target: TargetWorker, draft: DraftWorker, requests: int) -> ExtendInput:
    """The first batch of a rank that was idle until `requests` prompts came in."""
    batch = draft.idle_input()
    lengths_B = 3 + torch.arange(requests) % 5
    written_BT = torch.arange(8) >= 8 - lengths_B[:, None]
    prompts_BT = torch.arange(requests * 8).view(requests, 8) % target.dims["target_vocab"]
    return batch.merge(target.prefill(prompts_BT, written_BT))
