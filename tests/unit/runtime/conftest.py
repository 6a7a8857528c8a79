from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from shapecheck.config import settings
from shapecheck.dims import Dims, Owner, Size

SetLevel = Callable[..., None]


@pytest.fixture
def level(monkeypatch: pytest.MonkeyPatch) -> Iterator[SetLevel]:
    """Sets the level of contracts decorated from now on."""

    def choose(name: str | None, every: str | None = None) -> None:
        for flag, value in (("SHAPECHECK", name), ("SHAPECHECK_EVERY", every)):
            if value is None:
                monkeypatch.delenv(flag, raising=False)
            else:
                monkeypatch.setenv(flag, value)
        settings.cache_clear()

    yield choose
    settings.cache_clear()


@pytest.fixture(autouse=True)
def strict(level: SetLevel) -> None:
    """Contracts of these tests are decorated inside them, at strict unless they say otherwise."""
    level("strict")


@pytest.fixture
def dims() -> Dims:
    return pair_dims()


def pair_dims(target: int = 4096, draft: int = 2048) -> Dims:
    def size(value: int | None, owner: Owner, origin: str) -> Size:
        return Size(value=value, owner=owner, origin=origin)

    return Dims(
        sizes={
            "target_hidden": size(target, Owner.TARGET, "hidden_size in target/config.json"),
            "draft_hidden": size(draft, Owner.DRAFT, "hidden_size in draft/config.json"),
            "target_vocab": size(128, Owner.TARGET, "vocab_size in target/config.json"),
            "draft_vocab": size(100, Owner.DRAFT, "vocab_size in draft/config.json"),
            "recurrent_hidden": size(None, Owner.DRAFT, "standalone carries no hidden states"),
            "topk": size(2, Owner.ALGORITHM, "argument topk"),
            "num_steps": size(5, Owner.ALGORITHM, "argument num_steps"),
            "num_draft_tokens": size(7, Owner.ALGORITHM, "argument num_draft_tokens"),
        },
        target_dtype="bfloat16",
        draft_dtype="float16",
    )
