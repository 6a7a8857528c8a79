"""Benchmark reports as JSON: what was measured, on which machine, when, and by which command."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

PACKAGES = ("torch-shapecheck", "torch", "jaxtyping", "beartype", "pydantic")


def report(name: str, results: Mapping[str, object], *, command: str) -> dict[str, object]:
    """The results of benchmark `name` with everything needed to judge and repeat them."""
    return {
        "benchmark": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "machine": machine(),
        "versions": versions(),
        "results": dict(results),
    }


def machine() -> dict[str, object]:
    """The processor, its number and the system."""
    return {
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
    }


def versions() -> dict[str, str]:
    """Python and every package that takes part, if installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def write(document: Mapping[str, object]) -> None:
    """The report as JSON on standard output."""
    json.dump(document, sys.stdout, indent=2)
    sys.stdout.write("\n")


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
