"""The text prefilter: which files and functions can matter, decided before anything is parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A file matters when it speaks of two models and of tensors or their sizes, when it compares
# shapes around a copy, when it slices by the length of an index, or when it holds contracts.
# Imports reach what it calls.
_PAIR = ("draft", "target_", "speculat", "spec_", "assistant", "verifier")
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
    if _has_any(_PAIR, text.lower()) and _SIZES.search(text) is not None:
        return True
    return _COUNTS_AN_INDEX.search(text) is not None or _holds_contracts(text) or _is_guarded(text)


def _holds_contracts(text: str) -> bool:
    return _has_any(_CONTRACT_WORDS, text) and _CONTRACTS.search(text) is not None


def _is_guarded(text: str) -> bool:
    return _COPIES.search(text) is not None and _COMPARES.search(text) is not None


def _has_any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)


# A function has work to judge when sizes or tensors are made, met or handed over in it, when it
# passes on a model's config, or when it drives other methods.
_WORK = re.compile(
    r"torch\.(?:zeros|ones|empty|full|rand|cat|stack|where|arange|nn)|\.copy_\(|\.new_\w+\("
    r"|hidden|vocab|logits|_like\(|head_dim|\.shape\b|\[\s*:|tokens|//|self\.\w+\("
    r"|(?:draft|target)_(?:\w+_)?(?:config|cfg)\b"
)
# It is a root when, besides, a method of its class or most of its file speaks of two models, or it
# does itself, or of the widths between them or the buffers of a graph; what it calls is interpreted
# with what it passes. Stems of the words of a file are enough here.
_MODELS = ("draft", "target", "speculat", "spec_", "assist", "verif", "eagle", "medusa", "mtp")
_TELLING = (*_MODELS, "num_steps", "topk", "padded", "capture")
_OFTEN = 20  # lines


@dataclass(frozen=True, slots=True)
class Weight:
    """What the text of a function says: it works with sizes, it tells of two models."""

    works: bool
    tells: bool


def weight(segment: str) -> Weight:
    """The weight of a function by its text, comments included."""
    tells = _has_any(_TELLING, segment.lower()) or _is_guarded(segment)
    return Weight(
        works=_WORK.search(segment) is not None,
        tells=tells or _COUNTS_AN_INDEX.search(segment) is not None,
    )


def speaks(text: str) -> bool:
    """Whether a file is about two models, by its contracts or by how often it names one."""
    if _holds_contracts(text):
        return True
    text = text.lower()
    return sum(map(text.count, _MODELS)) * _OFTEN > text.count("\n")
