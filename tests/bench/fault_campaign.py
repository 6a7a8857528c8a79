"""fault_campaign: every known trap injected into an engine with graphs on, and who names it.

python -m tests.bench.fault_campaign --device cuda --rounds 3 --seed 0 --json

A trap is *named before a kernel* when the contract speaks and no forward or graph replay has begun
since the fault was made. The seed chooses how many calls go well before it. After each one the same
process has to decode as before.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from shapecheck import ShapeContractError
from shapecheck.config import Level
from tests.bench.faults import FAULTS, GREEDY, Fault, Injection
from tests.bench.levels import at_level
from tests.bench.patches import Patches
from tests.bench.report import report, write


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What became of one injected fault; `message` is "" when nothing was said."""

    healthy: int
    message: str
    named: bool
    before_kernel: bool


def campaign(
    faults: Sequence[Fault], *, device: str, level: Level, rounds: int, seed: int
) -> dict[str, list[Found]]:
    """Every fault in every round, at this level and with graphs on."""
    drawn = random.Random(seed)
    found: dict[str, list[Found]] = {fault.trap: [] for fault in faults}
    with at_level(level):
        for _ in range(rounds):
            for fault in faults:
                found[fault.trap].append(inject(fault, device=device, healthy=drawn.randrange(4)))
    return found


def inject(fault: Fault, *, device: str, healthy: int, graphs: bool = True) -> Found:
    """One fault at the level that is on; other errors than a contract's pass through."""
    message = ""
    with Patches() as patches:
        run = Injection(patches, device=device, graphs=graphs, healthy=healthy)
        try:
            fault.inject(run)
        except ShapeContractError as error:
            message = str(error)
    if device != "cpu":
        # A kernel that has read wrong memory fails here at the latest.
        torch.cuda.synchronize()
    return Found(
        healthy=healthy,
        message=message,
        named=bool(message) and all(part in message for part in fault.wanted),
        before_kernel=bool(message) and run.made > 0 and run.forwards_after == 0,
    )


def reference(device: str) -> list[tuple[int, ...]]:
    """What a healthy engine says: the same before and after a campaign."""
    with Patches() as patches:
        run = Injection(patches, device=device, graphs=True)
        outputs = run.tiny().generate(run.prompts, GREEDY)
    return [output.token_ids for output in outputs]


def as_report(found: dict[str, list[Found]], *, level: Level) -> dict[str, object]:
    """One row a trap."""
    return {
        trap: {
            "level": str(level),
            "rounds": len(each),
            "named": sum(one.named for one in each),
            "named_before_a_kernel": sum(one.named and one.before_kernel for one in each),
            "message": each[0].message,
        }
        for trap, each in found.items()
    }


def main() -> int:
    """Run, print, and return 0 when every trap was named before a kernel, else 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="the whole report as JSON")
    options = parser.parse_args()
    before = reference(options.device)
    rows: dict[str, object] = {}
    failed = False
    for level in (Level.STRICT, Level.FULL):
        faults = [fault for fault in FAULTS if fault.level is level]
        found = campaign(
            faults, device=options.device, level=level, rounds=options.rounds, seed=options.seed
        )
        rows |= as_report(found, level=level)
        for trap, each in found.items():
            good = sum(one.named and one.before_kernel for one in each)
            failed |= good < len(each)
            if not options.json:
                print(f"{level:6} {trap:42} {good} of {len(each)} named before a kernel")
                print(f"       {each[0].message.splitlines()[0] if each[0].message else 'nothing'}")
    recovered = reference(options.device) == before
    if options.json:
        named = torch.cuda.get_device_name() if options.device.startswith("cuda") else "cpu"
        results = {"device": named, "seed": options.seed, "recovered": recovered, "traps": rows}
        command = f"python -m tests.bench.fault_campaign --device {options.device} --json"
        write(report("fault_campaign", results, command=command))
    else:
        print(f"decodes as before: {recovered}")
    return int(failed or not recovered)


if __name__ == "__main__":
    raise SystemExit(main())
