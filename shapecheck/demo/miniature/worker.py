"""What `shapecheck demo` lints where no package index is reachable; never imported.

The shape of the public bug in plain code, without a contract: one placeholder, three callers, and
one of them takes its width from the other model's config.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass
class ModelConfig:
    """The sizes of one model."""

    hidden_size: int
    vocab_size: int


@dataclass
class ServerArgs:
    """Where the two models are described."""

    model_config: ModelConfig
    draft_model_config: ModelConfig


@dataclass
class ExtendInfo:
    """What the target hands to the draft."""

    hidden_states: torch.Tensor
    bonus_tokens: torch.Tensor

    @classmethod
    def create_idle_input(cls, device: str, hidden_size: int) -> ExtendInfo:
        """The placeholder of a rank without requests."""
        return cls(
            hidden_states=torch.empty((0, hidden_size), device=device),
            bonus_tokens=torch.empty((0,), dtype=torch.int64, device=device),
        )

    def merge_batch(self, other: ExtendInfo) -> None:
        """Append the rows of `other`."""
        self.hidden_states = torch.cat([self.hidden_states, other.hidden_states], dim=0)
        self.bonus_tokens = torch.cat([self.bonus_tokens, other.bonus_tokens], dim=0)


class Batch:
    """The requests of one iteration and what crosses to the next phase with them."""

    def __init__(self, spec_info: ExtendInfo) -> None:
        self.spec_info = spec_info

    def merge(self, other: Batch) -> None:
        """Append the requests of `other`."""
        self.spec_info.merge_batch(other.spec_info)


class ModelWorker:
    """Runs one model."""

    def __init__(self, server_args: ServerArgs, is_draft_worker: bool = False) -> None:
        self.device = "cuda"
        self.model_config = (
            server_args.draft_model_config if is_draft_worker else server_args.model_config
        )


class DraftWorker(ModelWorker):
    """Runs the draft beside a target."""

    def __init__(self, server_args: ServerArgs, target_worker: ModelWorker) -> None:
        super().__init__(server_args, is_draft_worker=True)
        self.target_worker = target_worker

    def idle_before_prefill(self, batch: Batch) -> None:
        """No requests yet."""
        batch.spec_info = ExtendInfo.create_idle_input(
            device=self.device, hidden_size=self.target_worker.model_config.hidden_size
        )

    def idle_before_draft(self, batch: Batch) -> None:
        """No requests in this iteration."""
        batch.spec_info = ExtendInfo.create_idle_input(
            device=self.device, hidden_size=self.target_worker.model_config.hidden_size
        )

    def idle_after_verify(self, batch: Batch) -> None:
        """Every request finished in this iteration: the rare state, and the wrong width."""
        batch.spec_info = ExtendInfo.create_idle_input(
            device=self.device, hidden_size=self.model_config.hidden_size
        )
