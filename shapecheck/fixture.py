"""The pytest fixture `traced`: a trace that fails its test on a finding, or when it saw nothing.

torch is imported when a test asks for the fixture, so that other test runs do not pay for it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

import pytest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from shapecheck.dims import Dims
    from shapecheck.symbolic import Trace


class Traced(Protocol):
    """What the fixture gives: `with traced(dims) as t: ...`."""

    def __call__(self, dims: Dims | None = None, **options: Any) -> AbstractContextManager[Trace]:
        """A trace; at the end of the block findings and empty runs fail the test."""
        ...


@pytest.fixture
def traced(request: pytest.FixtureRequest) -> Traced:
    """`with traced(dims) as t:` traces the block; findings and empty runs fail the test."""
    module = cast(ModuleType, request.module)  # pyright: ignore[reportUnknownMemberType]

    @contextmanager
    def run(
        dims: Dims | None = None, *, within: Iterable[str] = (), **options: Any
    ) -> Generator[Trace]:
        from shapecheck.symbolic import trace

        with trace(dims, within=(*within, module.__name__), **options) as t:
            yield t
        report = t.report()
        if report.exit_code:
            pytest.fail(report.text(), pytrace=False)

    return run
