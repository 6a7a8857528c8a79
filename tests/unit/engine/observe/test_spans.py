"""Traces: phases, replays and broken contracts, in a file that loads; nothing when it is off."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.observe.device_clock import DeviceSpan
from engine.observe.spans import Spans
from engine.observe.watch import watched
from engine.sampling import SamplingParams
from shapecheck import ShapeContractError

from ..conftest import SHAPES, tiny

PARAMS = SamplingParams(max_tokens=6, temperature=0.0, ignore_eos=True)


def loaded(spans: Spans, path: Path) -> list[dict[str, object]]:
    spans.write(path)
    return json.loads(path.read_text())["traceEvents"]


def test_phases_stand_inside_turns_and_replays_inside_phases(tmp_path: Path) -> None:
    llm, spans = tiny("eagle3", graphs=True, **SHAPES["tree"]), Spans()
    with watched(llm.engine.scheduler, spans):
        llm.generate("hello", PARAMS)
    events = loaded(spans, tmp_path / "trace.json")
    spent = [event for event in events if event["ph"] == "X"]
    names = {event["name"] for event in spent}
    assert {"turn", "prefill", "draft decode", "verify", "commit", "draft extend"} <= names

    def inside(name: str, outer: str) -> bool:
        def ends(event: dict[str, object]) -> float:
            return float(str(event["ts"])) + float(str(event["dur"]))

        around = [event for event in spent if event["name"] == outer]
        return all(
            any(one["ts"] <= event["ts"] and ends(event) <= ends(one) for one in around)  # type: ignore[operator]  # JSON
            for event in spent
            if event["name"] == name
        )

    assert {"verify replay", "draft loop replay", "draft extend replay"} <= names
    assert inside("verify replay", "verify")
    assert inside("draft loop replay", "draft decode")
    assert inside("draft step forward", "draft loop replay")
    assert inside("draft extend replay", "draft extend")
    assert inside("verify", "turn")
    processes = [event["args"]["name"] for event in events if event["name"] == "process_name"]  # type: ignore[index]  # JSON
    assert processes == ["host", "device"]


def test_off_again_afterwards() -> None:
    llm, spans = tiny("standalone", graphs=True), Spans()
    step = llm.engine.scheduler.step
    forward = step.verify.forward
    with watched(llm.engine.scheduler, spans):
        assert step.verify.forward is not forward
    assert step.verify.forward is forward
    assert llm.engine.metrics.watchers == ()
    llm.generate("hello", PARAMS)
    assert spans.events == []


def test_a_broken_contract_is_in_the_trace_once(full: None, tmp_path: Path) -> None:
    """Under `strict` it ends every span around it; it is one event all the same."""
    llm, spans = tiny("standalone"), Spans()
    verify = llm.engine.scheduler.step.verify
    accept = verify.accept

    def bent(*given: object) -> object:
        found = accept(*given)  # type: ignore[arg-type]  # handed on as it came
        return replace(found, accept_lens=found.accept_lens.long())

    verify.accept = bent  # type: ignore[assignment]  # a fault
    with watched(llm.engine.scheduler, spans), pytest.raises(ShapeContractError):
        llm.generate("hello", PARAMS)
    events = loaded(spans, tmp_path / "trace.json")
    broken = [event for event in events if event["name"] == "contract violation"]
    assert len(broken) == 1
    assert "accept_lens" in str(broken[0]["args"])
    assert {"verify", "turn"} <= {event["name"] for event in events}, "what was open is closed"


def test_a_violation_that_is_only_logged(tmp_path: Path) -> None:
    spans = Spans()
    with spans.listening():
        logging.getLogger("shapecheck").warning("%s", "SHP203 a tensor of another dtype")
    logging.getLogger("shapecheck").warning("not this one")
    broken = [event for event in spans.events if event["ph"] == "i"]
    assert [event["args"] for event in broken] == [{"message": "SHP203 a tensor of another dtype"}]


def test_the_devices_spans_have_a_row_of_their_own(tmp_path: Path) -> None:
    spans = Spans()
    device = [DeviceSpan(name="verify replay", start=1.0, end=3.5)]
    spans.add_device(device, origin=spans.origin + 0.25)
    event = next(one for one in loaded(spans, tmp_path / "t.json") if one["ph"] == "X")
    assert event["ts"] == pytest.approx(251000)
    assert event["dur"] == pytest.approx(2500)
    assert event["pid"] == 2


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="choose another file"):
        Spans().write(tmp_path / "nowhere" / "trace.json")
