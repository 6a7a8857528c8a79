"""Real releases in CI: the seed's pair, and one engine that holds no such bug."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import pytest

from shapecheck.diagnostics.json import fingerprint
from shapecheck.static.release import IndexUnreachableError
from tests.wild.cases import load_cases
from tests.wild.linting import lint
from tests.wild.newest import judgements
from tests.wild.outcome import judge

pytestmark = pytest.mark.network
SEED = "sgl-24215-standalone-idle-width"


def needs_the_index(test: Callable[..., None]) -> Callable[..., None]:
    """Skip, with the reason, when the package index does not answer; any other fault fails."""

    @wraps(test)
    def guarded(**given: object) -> None:
        try:
            test(**given)
        except IndexUnreachableError as error:
            pytest.skip(str(error))

    return guarded


@pytest.mark.parametrize("packs", [False, True], ids=["plain", "packs"])
@needs_the_index
def test_the_seed_is_found_and_its_fix_is_clean(packs: bool) -> None:
    case = next(one for one in load_cases() if one.id == SEED)
    outcome = judge(case, packs=packs)
    assert outcome.found, "nothing on the buggy release counts"
    assert outcome.clean, "\n".join(outcome.lines())


@needs_the_index
def test_transformers_has_no_finding_that_nobody_judged() -> None:
    parts = ("transformers/generation", "transformers/cache_utils.py")
    targets = tuple(f"pypi:transformers==5.24.0:{part}" for part in parts)
    report = lint(targets, packs=True)
    assert sum(one.lines for one in report.analyses) > 10_000
    unknown = [one for one in report.findings if fingerprint(one) not in judgements()]
    assert not unknown
