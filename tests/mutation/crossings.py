"""Everything that crosses a contract in a run, bit for bit, as one hash.

With contracts off nothing is judged; each contracted function is only overheard. Two engines with
one hash are the same to whoever stands at a boundary: what differs between them stays inside.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import _disable_current_modes

from shapecheck.runtime.values import tensors_in
from shapecheck.spec import FunctionContract, watching
from shapecheck.symbolic.standins import Function, Standins


class Crossings:
    """A hash of the tensors that crossed so far, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def hear(self, where: str, values: object) -> None:
        """Add the tensors in `values`: name of the contract, shape, dtype and bytes."""
        with _disable_current_modes():
            for tensor in tensors_in([values]):
                self._hash.update(f"{where} {tensor.dtype} {tuple(tensor.shape)}".encode())
                bits = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
                self._hash.update(bits.numpy().tobytes())

    def digest(self) -> str:
        """Another digest is another tensor, or another order of crossings."""
        return self._hash.hexdigest()


@contextmanager
def overheard(crossings: Crossings) -> Generator[None]:
    """In the block every call of a contracted function is heard, its arguments and its result."""
    standins = Standins()

    def hold(contract: FunctionContract) -> None:
        standins.put(contract.function, lambda original: _heard(contract.where, original))

    def _heard(where: str, original: Function) -> Callable[..., object]:
        def crossed(*args: object, **kwargs: object) -> object:
            crossings.hear(where, [*args, *kwargs.values()])
            result = original(*args, **kwargs)
            crossings.hear(where, result)
            return result

        return crossed

    try:
        with watching(hold):
            yield
    finally:
        standins.restore()
