"""The GPU figures of README and docs/kernels.md are those of the results beside the benches."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "tests/bench/results"


def result(name: str) -> dict:
    """The last run of a bench."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def rows(page: str, *, after: str) -> list[list[str]]:
    """The cells of the first table behind these words, its two heading lines left out."""
    text = (ROOT / page).read_text()
    table = re.search(r"(?:^\|.*\n)+", text[text.index(after) :], re.MULTILINE)
    assert table is not None
    lines = table.group().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("name", ["engine_peers", "engine_sweep"])
def test_contracts_were_on(name: str) -> None:
    assert result(name)["contracts"] == "strict"


def test_readme_compares_with_its_peers_as_measured() -> None:
    found = result("engine_peers")
    plain, drafted = (point["tokens_per_second_at_the_average"] for point in found["engine"])
    full = found["engine at full acceptance"][-1]["tokens_per_second_at_the_average"]
    peers = [each["tokens_per_second"] for each in found["transformers"].values()]
    others = [found["compiled"]["tokens_per_second"], *peers]
    speeds = [drafted, plain, *others, full]
    ratios = [drafted / other for other in (plain, *others)] + [full / peers[-1]]
    table = rows("README.md", after="tests.bench.engine_peers --json")
    for (_, speed, _), value in zip(table, speeds, strict=True):
        assert speed == (f"{value:.1f}" if value < 100 else f"{value:.0f}")
    for (_, _, ratio), value in zip(table[1:], ratios, strict=True):
        assert ratio.split(" x")[0] == (f"{value:.1f}" if value < 10 else f"{value:.0f}")


def test_readme_describes_the_iteration_as_measured() -> None:
    found = result("engine_peers")
    point = found["engine"][-1]
    share = point["target_step_share_of_bandwidth"]
    text = " ".join((ROOT / "README.md").read_text().split())
    assert f"An iteration takes {point['iteration_ms']:.2f} ms" in text
    assert f"the GPU is idle for {point['gpu_idle_share']:.1%}".replace("%", " %") in text
    bandwidth = found["read_bandwidth_GB/s"]
    assert f"reads at {share:.0%} of the {bandwidth:.0f} GB/s".replace("%", " %") in text


def test_every_point_of_the_sweep_is_published_as_measured() -> None:
    points = result("engine_sweep")["points"]
    points.sort(key=lambda point: (point["requests"], point["num_draft_tokens"]))
    table = rows("docs/kernels.md", after="engine_sweep.json")
    for cells, point in zip(table, points, strict=True):
        width, device = point["num_draft_tokens"], point["device_ms"]
        limits = point["limit_by_bytes_ms"], point["limit_by_flops_ms"]
        forwards = point["iteration_ms"] / point["limit_forward_by_forward_ms"]
        drafted = ["", ""]
        if width > 1:
            step = device["draft loop replay"]["ms"] / (width - 2)
            drafted = [f"{step:.2f} ms", f"{device['draft extend replay']['ms']:.2f} ms"]
        assert cells[:9] == [
            str(point["requests"]),
            str(width),
            f"{point['iteration_ms']:.2f} ms",
            "{:.2f}, {:.2f} ms".format(*limits),
            f"{point['times_the_limit']:.2f}",
            f"{forwards:.2f}",
            f"{device['verify replay']['ms']:.2f} ms",
            *drafted,
        ]
