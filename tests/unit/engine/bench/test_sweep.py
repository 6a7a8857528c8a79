"""The bench of random weights, with sizes small enough for a CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from engine.bench.card import Card
from engine.bench.command import Numbers, bench
from engine.bench.measure import turns
from engine.bench.report import sweep_report
from engine.bench.sweep import Plan, engine_at
from engine.models.config import read_config


@pytest.fixture
def shapes(tmp_path: Path) -> str:
    """Two config files, as --random takes them."""
    names = []
    for hidden in (64, 32):
        raw = {
            "architectures": ["LlamaForCausalLM"],
            "vocab_size": 300,
            "hidden_size": hidden,
            "intermediate_size": 96,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
        }
        path = tmp_path / f"{hidden}.json"
        path.write_text(json.dumps(raw))
        names.append(str(path))
    return ",".join(names)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(bench, arguments, catch_exceptions=False)


def sizes(*arguments: str) -> tuple[str, ...]:
    return ("--context", "6", "--iterations", "2", "--device", "cpu", *arguments)


def test_every_point_and_both_limits(shapes: str) -> None:
    result = invoke(
        *("--random", shapes, "--requests", "1,2", "--num-draft-tokens", "1,3", "--json"),
        *sizes("--synthetic-accept", "1"),
    )
    found = json.loads(result.stdout)
    assert found["acceptance"].startswith("SYNTHETIC: each drafted token is kept with probability")
    assert result.stderr.startswith("SYNTHETIC")
    points = [(one["requests"], one["num_draft_tokens"]) for one in found["points"]]
    assert points == [(1, 1), (1, 3), (2, 1), (2, 3)]
    for one in found["points"]:
        # At probability 1 every drafted token is kept, by count and on average.
        assert one["accept_length"] == one["average_accept_length"] == one["num_draft_tokens"]
        limit = max(one["limit_by_bytes_ms"], one["limit_by_flops_ms"])
        assert one["times_the_limit"] == pytest.approx(one["iteration_ms"] / limit)
        assert one["mean_context"] > 6
        assert one["device_ms"] is None, "a CPU has no events"
        assert {"verify", "commit", "read back"} <= set(one["host_ms"])


def test_a_trace_comes_with_it(shapes: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    result = invoke("--random", shapes, *sizes("--trace", str(path)))
    assert "SYNTHETIC" in result.stdout
    assert "accept length" in result.stdout
    events = json.loads(path.read_text())["traceEvents"]
    turned = [event for event in events if event["name"] == "turn"]
    assert len(turned) == 2
    names = {event["name"] for event in events if event["ph"] == "X"}
    assert {"verify replay", "draft loop replay", "draft extend replay"} <= names
    replays = [event for event in events if event["name"] == "draft loop replay"]
    assert len(replays) % 2 == 0, "as many in every turn"


def test_memory_for_every_iteration_at_full_acceptance(shapes: str) -> None:
    """Were it too little, requests would end or be preempted while they are timed."""
    target, draft = (read_config(Path(name)) for name in shapes.split(","))
    plan = Plan(
        target=target,
        draft=draft,
        acceptance=1.0,
        context=6,
        iterations=3,
        requests=(2,),
        num_draft_tokens=(4,),
        settings={"device": "cpu", "dtype": "float32", "graphs": True},
    )
    llm = engine_at(plan, plan.pair(), 2, 4)
    assert llm.engine.max_context >= 6 + 1 + turns(3) * 4 + 1
    assert llm.engine.memory.allocator.capacity >= 2 * llm.engine.max_context


def test_the_ridge_follows_the_dtype(shapes: str) -> None:
    """Twice the bytes a weight take as many operations more to be worth their reading."""
    target, draft = (read_config(Path(name)) for name in shapes.split(","))

    def ridge(dtype: str) -> object:
        plan = Plan(
            target=target,
            draft=draft,
            acceptance=1.0,
            context=6,
            iterations=3,
            requests=(1,),
            num_draft_tokens=(1,),
            settings={"device": "cpu", "dtype": dtype},
        )
        card = Card(name="any", bandwidth=1e9, rate=1e12)
        return sweep_report(plan, [], card, command="")["ridge_rows_of_the_target"]

    assert ridge("float32") == pytest.approx(2 * ridge("bfloat16"))


@pytest.mark.parametrize(
    ("text", "wanted"), [("1,8,32", (1, 8, 32)), ("1..4", (1, 2, 3, 4)), ("2,5..6", (2, 5, 6))]
)
def test_numbers(text: str, wanted: tuple[int, ...]) -> None:
    assert Numbers().convert(text, None, None) == wanted


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("--random", "llama-8b"), "name two shapes"),
        (("--requests", "1,2", "--target", "tiny"), "with --random only"),
        (("--requests", "x"), "'x' is no number; write 1,8,32 or 1..16"),
        (("--requests", "4..1"), "write the smaller number first"),
        (("--requests", "0"), "not in the range"),
        (("--requests", "1..99999999999"), "with at most 6 digits"),
        (("--target", "tiny", "--trace", "no/such/folder/t.json"), "its folder does not exist"),
        (("--target", "tiny", "--context", "4"), "--context has no effect without --random"),
        (("--random", "llama-8b,llama-1b", "--topk", "3"), "--topk has no effect with --random"),
        (("--random", "a,b", "--algorithm", "eagle"), "--algorithm has no effect with --random"),
        (("--synthetic-accept", "2"), "not in the range"),
        (("--random", "llama-8b,llama-1b", "--iterations", "0"), "give 1 or more"),
    ],
)
def test_faults_say_what_to_do(arguments: tuple[str, ...], wanted: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert wanted in result.stderr
