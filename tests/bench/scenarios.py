"""The three hand-overs that `contract_cost` measures, each written four ways."""

import os
from collections.abc import Callable
from dataclasses import dataclass

import torch
from beartype import beartype
from jaxtyping import Float32, Int64, jaxtyped
from torch import Tensor

# Contracts are decorated on import, so the level is set before.
os.environ["SHAPECHECK"] = "strict"

from shapecheck import Dims, carrier, contract
from shapecheck.dims import Owner, Size

BS, HIDDEN, TOPK, VOCAB = 8, 64, 4, 100
F32, I64 = torch.float32, torch.int64
CONTENDERS = ("bare", "asserts", "shapecheck", "jaxtyping")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One hand-over: what crosses, and a call per contender."""

    what: str
    calls: dict[str, Callable[[], object]]


def _dims() -> Dims:
    def size(value: int, owner: Owner) -> Size:
        return Size(value=value, owner=owner, origin="bench")

    return Dims(
        sizes={
            "draft_hidden": size(HIDDEN, Owner.DRAFT),
            "draft_vocab": size(VOCAB, Owner.DRAFT),
            "topk": size(TOPK, Owner.ALGORITHM),
        }
    )


class Worker:
    """(a) three tensors in, one out. Hand-written asserts read their sizes from the worker."""

    def __init__(self, dims: Dims) -> None:
        self.dims = dims
        self.hidden = dims["draft_hidden"]
        self.topk = dims["topk"]

    def bare(self, hidden: Tensor, index: Tensor, probs: Tensor) -> Tensor:
        return hidden

    def asserts(self, hidden: Tensor, index: Tensor, probs: Tensor) -> Tensor:
        bs = hidden.shape[0]
        assert hidden.shape == (bs, self.hidden)
        assert hidden.dtype is F32
        assert index.shape == (bs, self.topk)
        assert index.dtype is I64
        assert probs.shape == (bs, self.topk)
        assert probs.dtype is F32
        result = hidden
        assert result.shape == (bs, self.hidden)
        assert result.dtype is F32
        return result

    @contract(phase="decode")
    def shapecheck(
        self,
        hidden: Float32[Tensor, "bs draft_hidden"],
        index: Int64[Tensor, "bs topk"],
        probs: Float32[Tensor, "bs topk"],
    ) -> Float32[Tensor, "bs draft_hidden"]:
        return hidden

    @jaxtyped(typechecker=beartype)
    def jaxtyping(
        self,
        hidden: Float32[Tensor, "bs draft_hidden"],
        index: Int64[Tensor, "bs topk"],
        probs: Float32[Tensor, "bs topk"],
    ) -> Float32[Tensor, "bs draft_hidden"]:
        return hidden


@carrier
@dataclass(slots=True)
class State:
    """(b) eight tensors."""

    hidden: Float32[Tensor, "bs draft_hidden"]
    topk_p: Float32[Tensor, "bs topk"]
    topk_index: Int64[Tensor, "bs topk"]
    probs: Float32[Tensor, "bs draft_vocab"]
    bonus: Int64[Tensor, "bs"]
    seq_lens: Int64[Tensor, "bs"]
    slots: Int64[Tensor, "bs topk"]
    logits: Float32[Tensor, "bs draft_vocab"]


@carrier
@dataclass(slots=True)
class OptionalState:
    """(c) eight tensors, four of which may be None."""

    hidden: Float32[Tensor, "bs draft_hidden"] | None
    topk_p: Float32[Tensor, "bs topk"]
    topk_index: Int64[Tensor, "bs topk"]
    probs: Float32[Tensor, "bs draft_vocab"] | None
    bonus: Int64[Tensor, "bs"]
    seq_lens: Int64[Tensor, "bs"]
    slots: Int64[Tensor, "bs topk"] | None
    logits: Float32[Tensor, "bs draft_vocab"] | None


@jaxtyped(typechecker=beartype)
@dataclass(slots=True)
class JaxState:
    """(b) as jaxtyping checks it: when it is constructed, once per direction."""

    hidden: Float32[Tensor, "bs draft_hidden"]
    topk_p: Float32[Tensor, "bs topk"]
    topk_index: Int64[Tensor, "bs topk"]
    probs: Float32[Tensor, "bs draft_vocab"]
    bonus: Int64[Tensor, "bs"]
    seq_lens: Int64[Tensor, "bs"]
    slots: Int64[Tensor, "bs topk"]
    logits: Float32[Tensor, "bs draft_vocab"]


@jaxtyped(typechecker=beartype)
@dataclass(slots=True)
class JaxOptionalState:
    """(c) as jaxtyping checks it."""

    hidden: Float32[Tensor, "bs draft_hidden"] | None
    topk_p: Float32[Tensor, "bs topk"]
    topk_index: Int64[Tensor, "bs topk"]
    probs: Float32[Tensor, "bs draft_vocab"] | None
    bonus: Int64[Tensor, "bs"]
    seq_lens: Int64[Tensor, "bs"]
    slots: Int64[Tensor, "bs topk"] | None
    logits: Float32[Tensor, "bs draft_vocab"] | None


class CarrierWorker:
    """(b) and (c): one carrier in, one out."""

    def __init__(self, dims: Dims) -> None:
        self.dims = dims
        self.hidden = dims["draft_hidden"]
        self.topk = dims["topk"]
        self.vocab = dims["draft_vocab"]

    def bare(self, state: State) -> State:
        return state

    def asserts(self, state: State) -> State:
        hidden, topk, vocab, bs = self.hidden, self.topk, self.vocab, state.hidden.shape[0]
        tensor = state.hidden
        assert tensor.shape == (bs, hidden)
        assert tensor.dtype is F32
        tensor = state.topk_p
        assert tensor.shape == (bs, topk)
        assert tensor.dtype is F32
        tensor = state.topk_index
        assert tensor.shape == (bs, topk)
        assert tensor.dtype is I64
        tensor = state.probs
        assert tensor.shape == (bs, vocab)
        assert tensor.dtype is F32
        tensor = state.bonus
        assert tensor.shape == (bs,)
        assert tensor.dtype is I64
        tensor = state.seq_lens
        assert tensor.shape == (bs,)
        assert tensor.dtype is I64
        tensor = state.slots
        assert tensor.shape == (bs, topk)
        assert tensor.dtype is I64
        tensor = state.logits
        assert tensor.shape == (bs, vocab)
        assert tensor.dtype is F32
        result = state
        tensor = result.hidden
        assert tensor.shape == (bs, hidden)
        assert tensor.dtype is F32
        tensor = result.topk_p
        assert tensor.shape == (bs, topk)
        assert tensor.dtype is F32
        tensor = result.topk_index
        assert tensor.shape == (bs, topk)
        assert tensor.dtype is I64
        tensor = result.probs
        assert tensor.shape == (bs, vocab)
        assert tensor.dtype is F32
        tensor = result.bonus
        assert tensor.shape == (bs,)
        assert tensor.dtype is I64
        tensor = result.seq_lens
        assert tensor.shape == (bs,)
        assert tensor.dtype is I64
        tensor = result.slots
        assert tensor.shape == (bs, topk)
        assert tensor.dtype is I64
        tensor = result.logits
        assert tensor.shape == (bs, vocab)
        assert tensor.dtype is F32
        return result

    def asserts_optional(self, state: OptionalState) -> OptionalState:
        hidden, topk, vocab, bs = self.hidden, self.topk, self.vocab, state.topk_p.shape[0]
        tensor = state.hidden
        assert tensor is None or (tensor.shape == (bs, hidden) and tensor.dtype is F32)
        tensor = state.topk_p
        assert tensor.shape == (bs, topk)
        assert tensor.dtype is F32
        tensor = state.topk_index
        assert tensor.shape == (bs, topk)
        assert tensor.dtype is I64
        tensor = state.probs
        assert tensor is None or (tensor.shape == (bs, vocab) and tensor.dtype is F32)
        tensor = state.bonus
        assert tensor.shape == (bs,)
        assert tensor.dtype is I64
        tensor = state.seq_lens
        assert tensor.shape == (bs,)
        assert tensor.dtype is I64
        tensor = state.slots
        assert tensor is None or (tensor.shape == (bs, topk) and tensor.dtype is I64)
        tensor = state.logits
        assert tensor is None or (tensor.shape == (bs, vocab) and tensor.dtype is F32)
        result = state
        tensor = result.hidden
        assert tensor is None or (tensor.shape == (bs, hidden) and tensor.dtype is F32)
        tensor = result.topk_p
        assert tensor.shape == (bs, topk)
        assert tensor.dtype is F32
        tensor = result.topk_index
        assert tensor.shape == (bs, topk)
        assert tensor.dtype is I64
        tensor = result.probs
        assert tensor is None or (tensor.shape == (bs, vocab) and tensor.dtype is F32)
        tensor = result.bonus
        assert tensor.shape == (bs,)
        assert tensor.dtype is I64
        tensor = result.seq_lens
        assert tensor.shape == (bs,)
        assert tensor.dtype is I64
        tensor = result.slots
        assert tensor is None or (tensor.shape == (bs, topk) and tensor.dtype is I64)
        tensor = result.logits
        assert tensor is None or (tensor.shape == (bs, vocab) and tensor.dtype is F32)
        return result

    @contract(phase="decode")
    def shapecheck(self, state: State) -> State:
        return state

    @contract(phase="decode")
    def shapecheck_optional(self, state: OptionalState) -> OptionalState:
        return state


def _tensors() -> dict[str, Tensor]:
    return {
        "hidden": torch.zeros(BS, HIDDEN),
        "topk_p": torch.zeros(BS, TOPK),
        "topk_index": torch.zeros(BS, TOPK, dtype=I64),
        "probs": torch.zeros(BS, VOCAB),
        "bonus": torch.zeros(BS, dtype=I64),
        "seq_lens": torch.zeros(BS, dtype=I64),
        "slots": torch.zeros(BS, TOPK, dtype=I64),
        "logits": torch.zeros(BS, VOCAB),
    }


def scenarios(**replaced: Tensor) -> dict[str, Scenario]:
    """The three scenarios, every contender given the same tensors, `replaced` ones included."""
    dims, tensors = _dims(), {**_tensors(), **replaced}
    three = (tensors["hidden"], tensors["topk_index"], tensors["topk_p"])
    return {
        "a": Scenario(what="3 tensors in, 1 out", calls=_of_worker(Worker(dims), three)),
        "b": Scenario(what="a carrier of 8 tensors in and out", calls=_of_carrier(dims, tensors)),
        "c": Scenario(what="the same with 4 Optional fields", calls=_of_optional(dims, tensors)),
    }


def _of_worker(
    worker: Worker, three: tuple[Tensor, Tensor, Tensor]
) -> dict[str, Callable[[], object]]:
    first, second, third = three
    return {
        "bare": lambda: worker.bare(first, second, third),
        "asserts": lambda: worker.asserts(first, second, third),
        "shapecheck": lambda: worker.shapecheck(first, second, third),
        "jaxtyping": lambda: worker.jaxtyping(first, second, third),
    }


def _of_carrier(dims: Dims, tensors: dict[str, Tensor]) -> dict[str, Callable[[], object]]:
    worker, state = CarrierWorker(dims), State(**tensors)

    def construct() -> object:
        JaxState(**tensors)
        return JaxState(**tensors)

    return {
        "bare": lambda: worker.bare(state),
        "asserts": lambda: worker.asserts(state),
        "shapecheck": lambda: worker.shapecheck(state),
        "jaxtyping": construct,
    }


def _of_optional(dims: Dims, tensors: dict[str, Tensor]) -> dict[str, Callable[[], object]]:
    worker, state = CarrierWorker(dims), OptionalState(**tensors)

    def construct() -> object:
        JaxOptionalState(**tensors)
        return JaxOptionalState(**tensors)

    return {
        "bare": lambda: worker.bare(state),
        "asserts": lambda: worker.asserts_optional(state),
        "shapecheck": lambda: worker.shapecheck_optional(state),
        "jaxtyping": construct,
    }
