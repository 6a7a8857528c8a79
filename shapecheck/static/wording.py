"""How messages show source: one expression on one line."""

from __future__ import annotations

import ast
from functools import lru_cache


@lru_cache(maxsize=16384)
def wording(node: ast.AST) -> str:
    """The source of a node on one line; equal for nodes that differ in layout only."""
    names = _dotted(node)
    if names:
        return names
    try:
        return " ".join(ast.unparse(node).split())
    except ValueError:  # Python refuses to print a number of thousands of digits
        return f"<{type(node).__name__} with a number too long to show>"


def _dotted(node: ast.AST) -> str:
    """The text of a name or of names joined by dots, at a tenth of the cost; '' for the rest."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""
