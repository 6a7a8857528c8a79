"""Report: measured points as JSON and as lines, with what it takes to judge and repeat them."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from datetime import UTC, datetime

from engine.bench.card import Card
from engine.bench.measure import PROFILED, Measured
from engine.bench.roofline import Shape, ridge_rows
from engine.bench.sweep import Plan, Point
from shapecheck.config import settings

_PACKAGES = ("torch-shapecheck", "torch", "triton")
_GIGA, _TERA = 1e9, 1e12


def acceptance_label(plan: Plan) -> str:
    """What every output says of the tokens it counts."""
    return (
        f"SYNTHETIC: each drafted token is kept with probability {plan.acceptance}; "
        "what is generated is not the target's text"
    )


def header(card: Card, *, command: str) -> dict[str, object]:
    """When, where, with what and by which command."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "device": card.name,
        "versions": versions(),
        "contracts": str(settings().level),
        "read_bandwidth_GB/s": card.bandwidth / _GIGA,
        "matrix_rate_TFLOP/s": card.rate / _TERA,
        "ridge_FLOP_per_byte": card.ridge,
    }


def versions() -> dict[str, str]:
    """Python and the packages that take part, where installed."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def sweep_report(
    plan: Plan, points: Sequence[Point], card: Card, *, command: str
) -> dict[str, object]:
    """The whole sweep."""
    itemsize = plan.config(1, 1).torch_dtype.itemsize
    shape = Shape(requests=1, num_draft_tokens=1, context=plan.context, itemsize=itemsize)
    return {
        "benchmark": "engine bench --random",
        "acceptance": acceptance_label(plan),
        **header(card, command=command),
        "target": plan.target.source,
        "draft": plan.draft.source,
        "prompt_tokens": plan.context,
        "ridge_rows_of_the_target": ridge_rows(plan.target, shape, card),
        "idle_share_is": (
            f"1 - time in which the profiler saw a kernel or copy run in {PROFILED} iterations / "
            "wall time of iterations without the profiler"
        ),
        "points": [point_report(point, card) for point in points],
    }


def point_report(point: Point, card: Card) -> dict[str, object]:
    """One point; limits are those of the same run's card."""
    by_bytes, by_flops = point.iteration.limits_ms(card)
    read = point.verify_bandwidth()
    return {
        **measured_report(point.measured),
        "num_draft_tokens": point.num_draft_tokens,
        "average_accept_length": point.accept_length,
        "tokens_per_second_at_the_average": point.tokens_per_second,
        "limit_by_bytes_ms": by_bytes,
        "limit_by_flops_ms": by_flops,
        "times_the_limit": point.ratio(card),
        "limit_forward_by_forward_ms": point.forwards_limit_ms(card),
        "target_step_GB/s": None if read is None else read / _GIGA,
        "target_step_share_of_bandwidth": None if read is None else read / card.bandwidth,
    }


def measured_report(found: Measured) -> dict[str, object]:
    """What was measured, without any model of what it could be."""
    device = found.device
    return {
        "requests": found.requests,
        "mean_context": found.context,
        "iteration_ms": found.iteration_ms,
        "iteration_mean_ms": found.mean_ms,
        "tokens_per_second": found.tokens_per_second,
        "accept_length": found.snapshot.accept_length,
        "host_ms": found.host_ms,
        "device_ms": None
        if device is None
        else {
            name: {"ms": each.ms, "per_iteration": each.per_iteration}
            for name, each in device.items()
        },
        "gpu_idle_share": found.idle_share,
        "gpu_idle_share_under_the_profiler": found.idle_share_profiled,
        "contract_ms": found.contract_ms,
    }


def line(point: Point, card: Card) -> str:
    """One point for a terminal."""
    found = point.measured
    by_bytes, by_flops = point.iteration.limits_ms(card)
    idle = "" if found.idle_share is None else f"  idle {found.idle_share:.1%}"
    read = point.verify_bandwidth()
    rate = "" if read is None else f"  target step {read / card.bandwidth:.1%} of bandwidth"
    return (
        f"bs {found.requests:2} N {point.num_draft_tokens:2}  {found.iteration_ms:8.3f} ms  "
        f"bytes {by_bytes:.3f} ms, flops {by_flops:.3f} ms, {point.ratio(card):.2f} x the limit  "
        f"{point.tokens_per_second:.1f} tok/s at accept length {point.accept_length:.2f} "
        f"(drawn {found.snapshot.accept_length:.2f})"
        f"{rate}{idle}"
    )
