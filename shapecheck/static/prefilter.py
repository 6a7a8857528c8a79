"""The text prefilter: which files can matter, decided before anything is parsed."""

from __future__ import annotations

import re

# A file matters when it speaks of two models and of tensors or their sizes, when it compares
# shapes around a copy, when it slices by the length of an index, or when it holds contracts.
# Imports reach what it calls.
_OWNERS = ("draft", "Draft", "target_", "speculative", "spec_", "assistant", "verifier")
_SIZES = re.compile(r"\b(?:torch|Tensor)\b|hidden|vocab|config|shape")
_COMPARES = re.compile(r"\.(?:shape|size\()[^\n]*==|==[^\n]*\.(?:shape\b|size\()")
_COPIES = re.compile(r"\.copy_\(")
_CONTRACTS = re.compile(
    r"^\s*(?:from|import)\s+shapecheck\b|@(?:\w+\.)*(?:contract|carrier|graph_buffers)\b", re.M
)
_CONTRACT_WORDS = ("shapecheck", "contract", "carrier", "graph_buffers")
_COUNTS_AN_INDEX = re.compile(r"\[\s*:\s*len\(\s*\w*(?:ind|idx|keep|perm|sel)")


def can_matter(text: str) -> bool:
    """Whether a file is worth being an entry of the analysis."""
    if _has_any(_OWNERS, text) and _SIZES.search(text) is not None:
        return True
    if _COUNTS_AN_INDEX.search(text) is not None:
        return True
    if _has_any(_CONTRACT_WORDS, text) and _CONTRACTS.search(text) is not None:
        return True
    return _COPIES.search(text) is not None and _COMPARES.search(text) is not None


def _has_any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)


# A function is a root when sizes or tensors are made, met or handed over in it, when it passes on a
# model's config, or when it drives other methods; what it calls is interpreted with what it passes.
_WORK = re.compile(
    r"torch\.(?:zeros|ones|empty|full|rand|cat|stack|where|arange|nn)|\.copy_\(|\.new_\w+\("
    r"|hidden|vocab|logits|_like\(|head_dim|\.shape\b|\[\s*:|tokens|//|self\.\w+\("
    r"|(?:draft|target)_(?:\w+_)?(?:config|cfg)\b"
)


def can_work(segment: str) -> bool:
    """Whether the text of a function has anything to judge."""
    return _WORK.search(segment) is not None
