"""The pytest fixture `traced`: a trace that fails its test unless it is clean and looked at something.

torch is imported when a test asks for the fixture, so that other test runs do not pay for it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from shapecheck.dims import Dims
    from shapecheck.symbolic import Trace


class Traced(Protocol):
    """What the fixture gives: `with traced(dims) as t: ...`."""

    def __call__(
        self, dims: Dims | None = None, **options: Any
    ) -> AbstractContextManager[Trace]:
        """A trace; at the end of the block findings and empty runs fail the test."""
        ...


@pytest.fixture
def traced(request: pytest.FixtureRequest) -> Traced:
    """`with traced(dims) as t:` traces the block and fails the test on a finding or an empty run."""
    caller = request.module.__name__

    @contextmanager
    def run(dims: Dims | None = None, **options: Any) -> Generator[Trace]:
        from shapecheck.symbolic import trace

        within = (*options.pop("within", ()), caller)
        with trace(dims, within=within, **options) as t:
            yield t
        report = t.report()
        if report.exit_code:
            pytest.fail(report.text(), pytrace=False)

    return run
