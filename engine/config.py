"""EngineConfig: what an engine is built from, refused early and with the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from engine.errors import EngineError
from engine.models.base import Models
from engine.models.config import ModelConfig
from engine.proposers.base import Proposer
from engine.proposers.registry import PROPOSERS
from engine.sampling.params import MAX_SEED

DEFAULT_CONTEXT = 8192
MAX_CONTEXT = 2**20
# The bounds of Dims, told before a model with room for such a window is made.
MAX_DEPTH, MAX_WIDTH = 1024, 65536
# What the target's pool may take unless num_slots says otherwise, if one request fits in it.
DEFAULT_POOL_BYTES = 2**29
DtypeName = Literal["float32", "bfloat16", "float16"]


class EngineConfig(BaseModel):
    """Models, algorithm and memory of one engine.

    `algorithm` is a name of `engine.proposers.registry`.

    `drafting` says how a draft's candidates come about: "best" takes its most probable tokens,
    "drawn" samples them from its law, which accepts more under a temperature. Both are lossless.
    `graphs` replays forwards on static buffers, on CUDA as graphs; None means on CUDA only.
    `backend` "auto" takes the Triton kernels for 16-bit models on CUDA. `batch_invariant` makes
    the sums of a row that is decoded or verified independent of what runs beside it, at some cost.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str = "smollm2"
    draft: str | None = None
    algorithm: str = "ngram"
    num_steps: int = Field(default=4, ge=0, le=MAX_DEPTH)
    topk: int = Field(default=1, ge=1, le=MAX_DEPTH)
    num_draft_tokens: int | None = Field(default=None, ge=1, le=MAX_WIDTH)
    drafting: Literal["best", "drawn"] = "best"
    ngram_max: int = Field(default=4, ge=1, le=16)
    ngram_min: int = Field(default=2, ge=1, le=16)

    dtype: DtypeName = "float32"
    device: str = "cpu"
    seed: int = Field(default=0, ge=0, le=MAX_SEED)

    max_requests: int = Field(default=16, ge=1)
    max_context: int | None = Field(default=None, ge=2, le=MAX_CONTEXT)
    num_slots: int | None = Field(default=None, ge=2)
    prefill_chunk: int = Field(default=512, ge=1)
    prefix_cache: bool = True
    prefix_block: int = Field(default=16, ge=1)
    graphs: bool | None = None
    backend: Literal["auto", "torch", "triton"] = "auto"
    batch_invariant: bool = False

    @field_validator("algorithm")
    @classmethod
    def _registered(cls, name: str) -> str:
        if name not in PROPOSERS:
            raise ValueError(f"{name!r} is not known; {_choices(name, PROPOSERS)}")
        return name

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.ngram_min > self.ngram_max:
            raise ValueError(
                f"ngram_min={self.ngram_min} is above ngram_max={self.ngram_max}; lower it"
            )
        wants_draft = _drafts(PROPOSERS[self.algorithm])
        if wants_draft and self.draft is None and self.target != "tiny":
            raise ValueError(
                f"algorithm {self.algorithm!r} needs draft= (--draft), the path of a draft model"
            )
        if self.target == "tiny" and self.draft is not None:
            raise ValueError("target 'tiny' brings its own drafts; leave draft out")
        if not wants_draft and self.draft is not None:
            raise ValueError(
                f"algorithm {self.algorithm!r} runs without a draft model; leave draft out or "
                f"choose {' or '.join(name for name in PROPOSERS if _drafts(PROPOSERS[name]))}"
            )
        if not wants_draft and self.topk != 1:
            raise ValueError(f"algorithm {self.algorithm!r} drafts a chain; leave topk at 1")
        if self.models != "none" and self.num_steps < 1:
            raise ValueError("num_steps=0 drafts nothing; use algorithm='none' or raise it")
        return self

    @classmethod
    def of(cls, **values: object) -> Self:
        """The config of these settings; EngineError names the setting and what is allowed."""
        try:
            config = cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            message = str(first["msg"]).removeprefix("Value error, ")
            if first["type"] == "extra_forbidden":
                message = f"no such setting; {_choices(where, cls.model_fields)}"
            raise EngineError(f"{where}: {message}" if where else message) from None
        _check_device(config.device)
        return config

    @property
    def replays(self) -> bool:
        """Whether forwards run on static buffers."""
        return self.device.startswith("cuda") if self.graphs is None else self.graphs

    @property
    def models(self) -> Models:
        """Which models the algorithm works with."""
        return PROPOSERS[self.algorithm].models

    @property
    def torch_dtype(self) -> torch.dtype:
        """The compute dtype of target and draft."""
        return getattr(torch, self.dtype)

    def context(self, target: ModelConfig) -> int:
        """The longest request in tokens: as asked, else what the target was trained for."""
        if self.max_context is None:
            return min(target.max_positions, DEFAULT_CONTEXT)
        return self.max_context

    def columns(self, target: ModelConfig) -> int:
        """Table columns and rotary positions: the context and the widest window behind it."""
        drafted = self.num_steps * self.topk + 1
        return self.context(target) + max(drafted, self.num_draft_tokens or 0) + 1

    def slots(self, target: ModelConfig) -> int:
        """KV slots: as asked, else for every request at its longest, within bounds of memory."""
        if self.num_slots is not None:
            return self.num_slots
        longest = self.columns(target)
        slot_bytes = 2 * target.layers * target.kv_heads * target.head_dim
        slot_bytes *= self.torch_dtype.itemsize
        return min(self.max_requests * longest, max(longest, DEFAULT_POOL_BYTES // slot_bytes))

    def steps(self) -> int:
        """The draft depth: none without speculation."""
        return 0 if self.models == "none" else self.num_steps


def _drafts(proposer: type[Proposer]) -> bool:
    """Whether it works with a draft model."""
    return proposer.models not in ("none", "ngram")


def _choices(name: str, names: Iterable[str]) -> str:
    """What to write for an unknown name: the nearest one, and all there are."""
    names = list(names)
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}choose one of {', '.join(names)}"


def _check_device(name: str) -> None:
    """EngineError unless this device is here."""
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise EngineError(f"device {name!r} is not known; use cpu or cuda")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise EngineError(f"device={name!r} and no CUDA device is visible; use device='cpu'")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise EngineError(
            f"device={name!r} and {torch.cuda.device_count()} CUDA devices are visible; "
            "they count from cuda:0"
        )


def as_path(name: str) -> Path:
    """A model given by path; EngineError when it does not exist."""
    try:
        path = Path(name).expanduser()
        found = path.exists()
    except (OSError, RuntimeError, ValueError):  # too long, no such home, a NUL inside
        found = False
    if not found:
        raise EngineError(
            f"model {name!r} is neither 'smollm2' nor an existing folder or .gguf file; "
            "check the path"
        )
    return path
