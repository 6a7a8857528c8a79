"""BatchControls: the sampling parameters of the live requests as tensors, one row a request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from engine.sampling.params import SamplingParams
from engine.transfer import to_device
from shapecheck import carrier, contract


@carrier
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchControls:
    """Per-request parameters; the flags say what some request needs, without asking the device."""

    temperature: Float32[Tensor, "bs"]
    top_k: Int64[Tensor, "bs"]
    top_p: Float32[Tensor, "bs"]
    min_p: Float32[Tensor, "bs"]
    repetition_penalty: Float32[Tensor, "bs"]
    presence_penalty: Float32[Tensor, "bs"]
    frequency_penalty: Float32[Tensor, "bs"]
    seeds: Int64[Tensor, "bs"]
    all_greedy: bool
    truncates: bool
    penalises: bool

    @classmethod
    @contract
    def of(
        cls, params: Sequence[SamplingParams], seeds: Sequence[int], *, device: torch.device
    ) -> Self:
        """The controls of `params`; `seeds` are the requests' own or those chosen for them."""

        def on_device(values: Sequence[float], dtype: torch.dtype) -> Tensor:
            return to_device(torch.tensor(values, dtype=dtype), device)

        def reals(name: str) -> Tensor:
            return on_device([float(getattr(one, name)) for one in params], torch.float32)

        return cls(
            temperature=reals("temperature"),
            top_k=on_device([one.top_k for one in params], torch.int64),
            top_p=reals("top_p"),
            min_p=reals("min_p"),
            repetition_penalty=reals("repetition_penalty"),
            presence_penalty=reals("presence_penalty"),
            frequency_penalty=reals("frequency_penalty"),
            seeds=on_device(list(seeds), torch.int64),
            all_greedy=all(one.is_greedy for one in params),
            truncates=any(one.truncates and not one.is_greedy for one in params),
            penalises=any(one.penalises for one in params),
        )
