"""The text prefilter: which files can matter, decided before anything is parsed."""

from __future__ import annotations

import re

# A file matters when it handles tensors and speaks of two models, or of rows of a batch.
_TENSORS = re.compile(r"\b(?:torch|Tensor)\b")
_OWNERS = re.compile(r"draft|target_|speculative|spec_info|assistant")


def can_matter(text: str) -> bool:
    """Whether a file is worth being an entry of the analysis; imports reach the others."""
    return _TENSORS.search(text) is not None and _OWNERS.search(text) is not None
