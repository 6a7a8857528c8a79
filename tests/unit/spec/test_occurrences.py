"""SHP103: a name that occurs once in the expanded contract binds to anything."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from jaxtyping import Float32, Int64
from torch import Tensor

from shapecheck import ContractTextError, Dims, carrier, contract
from shapecheck.spec import contract_of, roots, tensors_of


@carrier
@dataclass
class State:
    hidden: Float32[Tensor, "bs draft_hidden"]
    index: Int64[Tensor, "bs topk"] | None = None


def test_a_loose_name_is_refused_with_its_place_and_remedy() -> None:
    with pytest.raises(ContractTextError) as caught:

        @contract
        def step(state: State, tokens: Int64[Tensor, "tokens"], dims: Dims) -> None: ...

    assert str(caught.value) == (
        "SHP103 loose-dim: step: 'tokens' occurs only in argument tokens, so it would bind to "
        "anything; use it in a second tensor, or write the size it has"
    )


def test_arguments_and_return_count_together() -> None:
    @contract
    def step(a: Int64[Tensor, "tokens"], dims: Dims) -> Int64[Tensor, "tokens"]:
        return a

    @contract
    def flat(a: Int64[Tensor, "tokens"], dims: Dims) -> Int64[Tensor, "tokens*topk"]:
        return a

    assert contract_of(step) is not None
    assert contract_of(flat) is not None


def test_the_items_of_a_list_share_their_names() -> None:
    @contract
    def merge(parts: list[Int64[Tensor, "tokens"]], dims: Dims) -> None: ...

    assert contract_of(merge) is not None


def test_a_yielded_item_alone_is_loose() -> None:
    with pytest.raises(ContractTextError, match=r"SHP103.*occurs only in yield"):

        @contract
        def stream(dims: Dims) -> Iterator[Int64[Tensor, "tokens"]]:
            yield from ()


def test_a_name_of_dims_may_occur_once_when_dims_is_in_reach() -> None:
    @contract
    def step(state: State, dims: Dims) -> None: ...

    with pytest.raises(ContractTextError, match="'draft_hidden' occurs only in argument state"):

        @contract
        def loose(state: State) -> None: ...


def test_the_members_of_a_union_do_not_help_one_another() -> None:
    @carrier
    @dataclass
    class Ragged:
        ids: Int64[Tensor, "tokens"]

    @carrier
    @dataclass
    class Flat:
        ids: Int64[Tensor, "tokens topk"]

    with pytest.raises(ContractTextError, match=r"'tokens' occurs only in argument it\.ids"):

        @contract
        def step(it: Ragged | Flat, dims: Dims) -> None: ...

    @contract
    def both(it: Ragged | Flat, dims: Dims) -> Int64[Tensor, "tokens"]:
        return it.ids


def test_a_contract_without_tensors_is_refused() -> None:
    with pytest.raises(ContractTextError, match="names no tensor and no carrier"):

        @contract
        def step(n: int) -> int:
            return n


def test_a_method_is_judged_when_its_class_is_complete() -> None:
    class Worker:
        @contract
        def step(self, a: Int64[Tensor, "bs"]) -> None: ...

    with pytest.raises(ContractTextError, match=r"SHP103.*Worker\.step: 'bs'"):
        _ = Worker.step.__shapecheck__.spec


def test_the_tensors_of_a_contract_with_their_paths() -> None:
    @contract(phase="decode")
    def step(state: State, more: tuple[State, ...], dims: Dims) -> State: ...

    spec = contract_of(step).spec
    found = [
        (place, times)
        for path, root in roots(spec)
        for place, _, times in tensors_of(root, path, spec.phase)
    ]
    assert found == [
        ("argument state.hidden", 1),
        ("argument state.index", 1),
        ("argument more[].hidden", 2),
        ("argument more[].index", 2),
        ("return.hidden", 1),
        ("return.index", 1),
    ]
