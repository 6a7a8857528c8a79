"""The known traps, injected: each is caught where it is made, with the dimension named."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.errors import EngineError
from engine.llm import LLM
from engine.tree import Accepted
from shapecheck.config import Level
from tests.bench.fault_campaign import as_report, campaign, inject, reference
from tests.bench.faults import FAULTS, GREEDY, Fault, Injection, flat_accept_table
from tests.bench.levels import at_level

from .conftest import SHAPES, tiny


@pytest.mark.parametrize(
    ("graphs", "healthy"), [(False, 0), (True, 2)], ids=["eager", "replayed, later"]
)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.trap)
def test_every_trap_is_named_before_a_kernel(fault: Fault, graphs: bool, healthy: int) -> None:
    with at_level(fault.level):
        found = inject(fault, device="cpu", healthy=healthy, graphs=graphs)
    for part in fault.wanted:
        assert part in found.message
    assert found.before_kernel, found.message


def test_a_campaign_is_seeded_and_leaves_nothing_behind() -> None:
    faults = [fault for fault in FAULTS if fault.inject is flat_accept_table]
    before = reference("cpu")
    first, again = (
        campaign(faults, device="cpu", level=Level.STRICT, rounds=2, seed=3) for _ in "ab"
    )
    assert first == again
    row = as_report(first, level=Level.STRICT)["flat_accept_table"]
    assert isinstance(row, dict)
    assert (row["named"], row["named_before_a_kernel"], row["rounds"]) == (2, 2, 2)
    assert reference("cpu") == before


def test_at_level_off_nothing_is_named() -> None:
    """A campaign that finds its faults with the contracts off would find them anyway."""
    fault = next(one for one in FAULTS if one.inject is flat_accept_table)
    with at_level(Level.OFF), pytest.raises((RuntimeError, IndexError)):
        inject(fault, device="cpu", healthy=0)


def test_a_forward_after_the_fault_is_counted() -> None:
    """A fault that only the next phase would notice is not named before a kernel."""
    late = replace(FAULTS[0], inject=_commit_is_wrong_and_nobody_looks)
    with at_level(Level.STRICT):
        found = inject(late, device="cpu", healthy=0)
    assert found.message
    assert not found.before_kernel


def _commit_is_wrong_and_nobody_looks(run: Injection) -> None:
    llm = run.tiny()
    step = llm.engine.scheduler.step

    def late(found: Accepted) -> Accepted:
        return found if run.made < 4 else replace(found, accept_lens=found.accept_lens.long())

    run.change(step.commit, "run", lambda found: found)
    run.change(step.verify, "accept", late)
    run.drive(llm)


@pytest.fixture
def eagle3(full: None) -> LLM:
    return tiny("eagle3", **SHAPES["tree"])


def test_law_made_by_hand(full: None) -> None:
    from engine.sampling import RootLaw

    with pytest.raises(EngineError, match="made by the sampler that drew the tokens"):
        RootLaw(probs=torch.ones(1, 129) / 129, seal=None)


def test_an_idle_rank_enters_every_forward(eagle3: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """Collectives match only if a rank without requests makes the same calls, with 0 rows."""
    rows: list[tuple[str, int]] = []
    for name, model in (("target", eagle3.engine.pair.target), ("draft", eagle3.engine.pair.draft)):
        assert model is not None
        model.register_forward_pre_hook(
            lambda _, args, name=name: rows.append((name, len(args[0])))
        )
    request = eagle3.engine.add([1, 2, 3], GREEDY)
    while not request.iterations:
        rows.clear()
        eagle3.engine.turn()
    # The last turn read the prompt and made one iteration; the iteration's calls come last.
    live = [name for name, _ in rows][-4:]
    eagle3.engine.scheduler.abort(request)
    rows.clear()
    eagle3.engine.scheduler.idle_turn()
    assert [name for name, _ in rows] == live == ["draft", "draft", "target", "draft"]
    assert all(count == 0 for _, count in rows)
