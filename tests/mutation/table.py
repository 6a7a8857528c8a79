"""The matrix mutant x tier, its sums, and the mutants that no tier sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tests.mutation.rules import HELD_BACK, RULES

Record = Mapping[str, object]
_CHANGES = {rule.name: rule.changes for rule in RULES}
# Errors of Python itself: no size is wrong, the mutant is not a program that could be written.
_BROKEN = ("AttributeError", "ImportError", "KeyError", "NameError", "TypeError", "UnboundLocal")
TIERS: Mapping[str, Callable[[Record], bool]] = {
    "lint": lambda one: one["lint"] != [],
    "trace": lambda one: bool(_traced(one)),
    "strict": lambda one: str(one["strict"]).startswith("SHP"),
    "full": lambda one: str(one["full"]).startswith("SHP"),
}


def _traced(one: Record) -> object:
    said = one["trace"]
    return said["found"] if isinstance(said, dict) else None


def seen(one: Record) -> bool:
    """Whether any tier sees it."""
    return any(tier(one) for tier in TIERS.values())


def kind(one: Record) -> str:
    """Whether the mutant counts: "counted", or why it does not.

    `equivalent`: every operation of a turn had the shapes and dtypes of the unmutated engine, and
    the rule is none of ids: what it changes are values or names. `internal`: the load run ends as
    ever, and every tensor that crosses a contract in it is the same, bit for bit. `broken`: Python
    stops it.
    """
    if is_broken(str(one["off"])):
        return "broken"
    if not one["changes"] and _CHANGES[str(one["rule"])] != "vocabulary":
        return "equivalent"
    return "counted" if one["crosses"] or not is_silent(one) else "internal"


def is_broken(off: str) -> bool:
    """Whether Python itself stops the mutant, by how it ends when nothing is checked."""
    return off.startswith(_BROKEN)


def _stopped(one: Record) -> bool:
    """Trace ends red (exit code 2) with torch's own error and no finding: shown, not counted."""
    said = one["trace"]
    return isinstance(said, dict) and bool(said.get("stopped")) and not seen(one)


def is_silent(one: Record) -> bool:
    """The load run ends without an error when nothing is checked."""
    return one["off"] == "done"


def document(
    records: Sequence[Record], base: Record, *, generated: int, of: str
) -> dict[str, object]:
    """Everything `--json` prints."""
    kinds = {name: [one for one in records if kind(one) == name] for name in _KINDS}
    counted = [one for one in kinds["counted"] if one["rule"] != HELD_BACK]
    held = [one for one in kinds["counted"] if one["rule"] == HELD_BACK]
    return {
        "generated": generated,
        "engine": base["engine"],
        "sample": of,
        "run": len(records),
        "kinds": {name: len(found) for name, found in kinds.items()},
        "clean": _is_clean(base),
        "counted": _shares(counted),
        "silent": _shares(one for one in counted if is_silent(one)),
        "held back": {"rule": HELD_BACK, **_shares(held)},
        "internal": _shares(kinds["internal"]),
        "counted and internal": _shares([*counted, *kinds["internal"]]),
        "rules": {
            rule.name: _shares(one for one in kinds["counted"] if one["rule"] == rule.name)
            for rule in RULES
        },
        "seen though nothing changed in the load run": _shares(kinds["equivalent"])["together"],
        "cpu seconds a mutant": round(
            sum(float(str(one["cpu_seconds"])) for one in records) / max(len(records), 1), 1
        ),
        "survivors": [_shown(one) for one in kinds["counted"] if not seen(one)],
        "records": list(records),
    }


_ROWS = ("counted", "silent", "held back", "internal", "counted and internal")
_KINDS = ("counted", "internal", "equivalent", "broken")


def _is_clean(base: Record) -> bool:
    """No tier says anything of the engine itself."""
    quiet = {"lint": base["lint"], "trace": base["trace"], "strict": "done", "full": "done"}
    for level in ("strict", "full"):
        outcome = base[level]
        ended = isinstance(outcome, dict) and set(outcome.values()) == {"done"}
        quiet[level] = "done" if ended else str(outcome)
    return (
        not TIERS["trace"](quiet)
        and isinstance(base["trace"], dict)
        and not base["trace"]["stopped"]
        and base["lint"] == []
        and quiet["strict"] == quiet["full"] == "done"
    )


def _shares(records: Iterable[Record]) -> dict[str, int]:
    found = list(records)
    sums = {name: sum(map(tier, found)) for name, tier in TIERS.items()}
    return {
        "mutants": len(found),
        **sums,
        "together": sum(map(seen, found)),
        "only stopped": sum(map(_stopped, found)),
    }


def _shown(one: Record) -> dict[str, object]:
    said = one["trace"]
    stopped = said.get("stopped", "") if isinstance(said, dict) else said
    return {
        "rule": one["rule"],
        "place": one["place"],
        "edit": f"{one['before']}  ->  {one['after']}",
        "unchecked": one["off"],
        "trace stopped": stopped,
    }


def text(found: Mapping[str, object]) -> str:
    """The summary that a person reads."""
    kinds = found["kinds"]
    assert isinstance(kinds, dict), "document() made it"
    lines = [
        f"{found['run']} of {found['generated']} mutants were run (sample {found['sample']}): "
        + ", ".join(f"{count} {name}" for name, count in kinds.items()),
        f"the engine itself is {'clean in every tier' if found['clean'] else 'NOT clean'}",
        f"{found['cpu seconds a mutant']} CPU seconds a mutant",
        "",
        f"{'':20}{'mutants':>9}"
        + "".join(f"{name:>9}" for name in (*TIERS, "together", "share"))
        + "  only stopped the trace",
    ]
    rules = found["rules"]
    assert isinstance(rules, dict), "document() made it"
    rows = {name: found[name] for name in _ROWS} | rules
    lines += [_row(name, shares) for name, shares in rows.items()]
    survivors = found["survivors"]
    assert isinstance(survivors, list), "document() made it"
    lines += ["", f"{len(survivors)} that no tier sees:"]
    lines += [f"  {one['place']}  {one['rule']}: {one['edit']}" for one in survivors]
    return "\n".join(lines)


def _row(name: str, shares: object) -> str:
    assert isinstance(shares, dict), "document() made it"
    total = shares["mutants"]
    cells = "".join(f"{shares[tier]:>9}" for tier in (*TIERS, "together"))
    share = f"{shares['together'] / total:.0%}" if total else ""
    return f"{name:20}{total:>9}{cells}{share:>9}{shares['only stopped']:>6}"
