"""The bench compares checks that check: which wrong tensors each contender refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
REFUSALS = """
import torch
from tests.bench.scenarios import CONTENDERS, scenarios
wrong = {
    "rows": torch.zeros(7, 64),
    "dtype": torch.zeros(8, 64, dtype=torch.float64),
    "width": torch.zeros(8, 7),
}
for what, tensor in wrong.items():
    for key, scenario in scenarios(hidden=tensor).items():
        for contender in CONTENDERS:
            try:
                scenario.calls[contender]()
            except (AssertionError, TypeError):
                print(what, contender, key)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": ":".join([str(ROOT), *sys.path]), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_what_each_contender_refuses() -> None:
    done = run("-c", REFUSALS)
    assert done.returncode == 0, done.stderr
    # jaxtyping binds a width that occurs once to anything: it checks less, and costs more.
    refusing = {
        "rows": ("asserts", "shapecheck", "jaxtyping"),
        "dtype": ("asserts", "shapecheck", "jaxtyping"),
        "width": ("asserts", "shapecheck"),
    }
    assert set(done.stdout.splitlines()) == {
        f"{what} {contender} {key}"
        for what, contenders in refusing.items()
        for contender in contenders
        for key in "abc"
    }


@pytest.mark.parametrize("flags", [["--json"], []])
def test_the_report(flags: list[str]) -> None:
    done = run("-m", "tests.bench.contract_cost", *flags, "--blocks", "2", "--number", "50")
    assert done.returncode in (0, 1), done.stderr  # so few blocks decide nothing
    if not flags:
        assert done.stdout.count("below jaxtyping + beartype") == 6
        return
    document = json.loads(done.stdout)
    assert document["command"] == "python -m tests.bench.contract_cost --json"
    assert set(document["results"]) == {"a", "b", "c"}
    assert {"python", "torch", "jaxtyping", "beartype"} <= set(document["versions"])
    assert document["date"]
    assert document["machine"]["cpus"] >= 1
