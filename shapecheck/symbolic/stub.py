"""Stand-ins for what is not loaded: they answer anything, and say that they were used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Used = Callable[[str, object], None]


class Stub:
    """Takes any use; every call is told to `used`, with what it was given: it did not run."""

    def __init__(self, name: str, used: Used) -> None:
        self._name = name
        self._used = used

    def __getattr__(self, name: str) -> Stub:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self._name}.{name}", self._used)

    def __call__(self, *args: object, **kwargs: object) -> Stub:
        self._used(self._name, (args, kwargs))
        return Stub(f"{self._name}()", self._used)

    def __getitem__(self, key: object) -> Stub:
        return Stub(f"{self._name}[...]", self._used)

    def __iter__(self) -> Iterator[object]:
        self._used(self._name, ())
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __or__(self, other: object) -> Stub:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        """A class with a stub among its bases goes without that base."""
        return ()

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., object],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Outside of a trace a stub in a torch call is an error of that call."""
        return NotImplemented

    def __repr__(self) -> str:
        return f"<stub {self._name}>"


def stub_name(stub: Stub) -> str:
    """What the stub stands for."""
    return stub._name  # pyright: ignore[reportPrivateUsage]  # a Stub has no public attribute
