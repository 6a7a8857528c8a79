"""Backend: what an engine computes with, torch's own operations or the Triton kernels."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

from engine.attention.base import AttentionBackend
from engine.attention.sdpa import SdpaBackend
from engine.config import EngineConfig
from engine.errors import EngineError
from engine.kv.pool import KVPool
from engine.kv.table import RequestTable
from engine.models.config import Family
from engine.models.llama import CausalLM
from engine.models.registry import MODELS
from engine.ops import TreeOps


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Chosen once per engine; Triton is imported only where its kernels run.

    `invariant` gives every product and sum of a row the same order in every batch and at every
    width, in all forwards but prefill and an EAGLE head's; what that has been seen to give on a
    card is in docs/kernels.md.
    """

    kernels: bool
    invariant: bool

    @classmethod
    def of(cls, config: EngineConfig) -> Backend:
        """The backend of a config; EngineError when it cannot run here.

        "auto" takes the kernels for 16-bit models on CUDA; float32 is for comparing, with the
        reference.
        """
        kernels = config.backend == "triton"
        if config.backend == "auto":
            kernels = config.device.startswith("cuda") and config.dtype != "float32"
        if kernels:
            _check_triton(config)
        if config.batch_invariant and not kernels:
            raise EngineError(
                f"batch_invariant needs the Triton kernels, and backend={config.backend!r} does "
                f"not take them for device={config.device!r} with dtype={config.dtype!r}; "
                "use backend='triton'"
            )
        return cls(kernels=kernels, invariant=config.batch_invariant)

    def language_model(self, family: Family) -> Callable[..., CausalLM]:
        """The class of a family's models, to be called with a ModelConfig."""
        kind = MODELS[family]
        if not self.kernels or kind is not CausalLM:
            return kind
        from engine.models.fused import FusedLM

        return functools.partial(FusedLM, invariant=self.invariant)

    def ops(self) -> TreeOps:
        """The small operations between forwards."""
        return TreeOps.triton() if self.kernels else TreeOps.torch()

    def attention(self, pool: KVPool, table: RequestTable) -> AttentionBackend:
        """Attention over this pool."""
        if not self.kernels:
            return SdpaBackend(pool, table)
        from engine.attention.triton_paged import TritonBackend

        return TritonBackend(pool, table, invariant=self.invariant)


def _check_triton(config: EngineConfig) -> None:
    if importlib.util.find_spec("triton") is None:
        raise EngineError(
            f"backend={config.backend!r} takes the Triton kernels for device={config.device!r} "
            "and Triton is not installed; install triton or use backend='torch'"
        )
    from triton import knobs

    if not config.device.startswith("cuda") and not knobs.runtime.interpret:
        raise EngineError(
            f"backend='triton' and device={config.device!r}: the kernels run on CUDA, and on a CPU "
            "only in Triton's interpreter; use device='cuda' or set TRITON_INTERPRET=1"
        )
