"""How messages show source: one expression on one line."""

from __future__ import annotations

import ast
from functools import lru_cache


@lru_cache(maxsize=16384)
def wording(node: ast.AST) -> str:
    """The source of a node on one line; equal for nodes that differ in layout only."""
    try:
        return " ".join(ast.unparse(node).split())
    except ValueError:  # Python refuses to print a number of thousands of digits
        return f"<{type(node).__name__} with a number too long to show>"
