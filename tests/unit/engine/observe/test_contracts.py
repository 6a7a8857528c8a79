"""The hand-overs of an iteration are recorded, and their checks timed without the work."""

from __future__ import annotations

import pytest

from engine.observe.contracts import check_seconds, recorded

from ..conftest import SHAPES, tiny

_CHAIN = ["RequestTable.columns_of"]
_JUDGED = ["Verify.run", "Commit.run"]


@pytest.mark.parametrize(
    ("algorithm", "wanted"),
    [
        ("none", [*_CHAIN, "PlainProposer.propose", *_JUDGED, "ChainProposer.after_verify"]),
        ("ngram", [*_CHAIN, "NgramProposer.propose", *_JUDGED, "ChainProposer.after_verify"]),
        (
            "eagle3",
            [
                *("ModelProposer.idle", "RequestTable.columns_of"),
                *["DraftLoop._forward"] * 3,
                *("RequestTable.columns_of", "DraftDecode.run", *_JUDGED),
                *("RequestTable.columns_of", "DraftExtend._state", "DraftExtend.after_verify"),
            ],
        ),
    ],
)
def test_every_boundary_of_an_iteration(algorithm: str, wanted: list[str]) -> None:
    llm = tiny(algorithm)
    step = llm.engine.scheduler.step
    with recorded(step) as crossings:
        llm.engine.scheduler.idle_turn()
    assert [crossing.contract.where for crossing in crossings] == wanted
    llm.engine.scheduler.idle_turn()
    assert len(crossings) == len(wanted), "nothing is recorded any more"


def test_checks_cost_something_when_they_are_on(full: None) -> None:
    llm = tiny("eagle3", **SHAPES["tree"])
    spent = llm.contract_seconds()
    assert spent > 0
    assert not llm.engine.scheduler.unfinished
    with recorded(llm.engine.scheduler.step) as crossings:
        llm.engine.scheduler.idle_turn()
    assert check_seconds(crossings, repeats=3) > 0
