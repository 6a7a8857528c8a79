"""Conditionals with arms in two units: requests for the modes that are listed, else tokens."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from shapecheck.static.counts import REQUESTS, WIDTHS, unit_of_name
from shapecheck.static.facts import Arms
from shapecheck.static.frames import Frame
from shapecheck.static.guards import last_name
from shapecheck.static.wording import wording

_WIDTH_NAME = re.compile(r"tokens?_per_|(?:^|_)width$")


def note_arms(frame: Frame, node: ast.IfExp) -> None:
    """Note `x // width if a() or b() else x`: a mode that the list forgets counts tokens."""
    test = node.test
    if not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)):
        return
    modes = [mode for mode in test.values if isinstance(mode, ast.Call)]
    if len(modes) < len(test.values) or _is_made_for(frame, modes):
        return
    for divided, whole in ((node.body, node.orelse), (node.orelse, node.body)):
        if not (isinstance(divided, ast.BinOp) and isinstance(divided.op, (ast.FloorDiv, ast.Div))):
            continue
        name = last_name(divided.right)
        if not (unit_of_name(name)[0] in WIDTHS or _WIDTH_NAME.search(name)):
            continue
        if ast.dump(divided.left) == ast.dump(whole):
            span = frame.module.span(node)
            frame.machine.facts.arms.setdefault(
                span,
                Arms(
                    requests=wording(divided),
                    tokens=wording(whole),
                    test=wording(test),
                    span=span,
                    where=frame.where,
                ),
            )


def _is_made_for(frame: Frame, modes: list[ast.Call]) -> bool:
    """Whether the class is named after a mode of the list: the other arm is never its own."""
    if frame.cls is None:
        return False
    own = frame.cls.name.lower()
    names = (last_name(mode.func).removeprefix("is_").replace("_", "") for mode in modes)
    return any(name and name in own for name in names)


def name_arms(frame: Frame, node: ast.Assign) -> None:
    """Let a conditional that is given to a count of requests say the name of that count."""
    span = frame.module.span(node.value)
    known = frame.machine.facts.arms.get(span)
    if known is None:
        return
    names = [last_name(target) for target in node.targets]
    counted = [name for name in names if unit_of_name(name)[0] == REQUESTS]
    if counted:
        frame.machine.facts.arms[span] = replace(known, requests=counted[0])
