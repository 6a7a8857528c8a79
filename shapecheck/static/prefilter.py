"""The text prefilter: which files can matter, decided before anything is parsed."""

from __future__ import annotations

import re

# A file matters when it speaks of two models and of tensors or their sizes, or when it compares
# shapes around a copy. What it calls is reached through its imports.
_OWNERS = re.compile(r"draft|target_|speculative|spec_info|assistant|verifier")
_SIZES = re.compile(r"\b(?:torch|Tensor)\b|hidden|vocab|config|shape")
_COMPARES = re.compile(r"\.(?:shape|size\()[^\n]*==|==[^\n]*\.(?:shape\b|size\()")
_COPIES = re.compile(r"\.copy_\(")


def can_matter(text: str) -> bool:
    """Whether a file is worth being an entry of the analysis."""
    if _OWNERS.search(text) is not None and _SIZES.search(text) is not None:
        return True
    return _COPIES.search(text) is not None and _COMPARES.search(text) is not None
