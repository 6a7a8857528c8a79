"""The static vocabulary: every axis name a contract may use, with its owner and meaning.

The names are the field's (one meaning each in annotations, docs and errors). A name outside the
vocabulary is SHP102: a typo must not become a fresh dimension that binds to anything.
"""

from __future__ import annotations

import difflib
import keyword
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from shapecheck.errors import ShapecheckError


class Owner(StrEnum):
    """Whose size a dimension is."""

    TARGET = "target"
    DRAFT = "draft"
    BATCH = "batch"
    ALGORITHM = "algorithm"


@dataclass(frozen=True, slots=True, kw_only=True)
class DimName:
    """A declared axis name. `per_call` names bind at a call; the others get numbers from Dims."""

    name: str
    owner: Owner
    meaning: str
    per_call: bool = False


def _target(name: str, meaning: str) -> DimName:
    return DimName(name=name, owner=Owner.TARGET, meaning=meaning)


def _draft(name: str, meaning: str) -> DimName:
    return DimName(name=name, owner=Owner.DRAFT, meaning=meaning)


def _algorithm(name: str, meaning: str) -> DimName:
    return DimName(name=name, owner=Owner.ALGORITHM, meaning=meaning)


def _batch(name: str, meaning: str, *, per_call: bool) -> DimName:
    return DimName(name=name, owner=Owner.BATCH, meaning=meaning, per_call=per_call)


_BUILT_IN = (
    _batch("bs", "live requests of the batch", per_call=True),
    _batch("padded_bs", "rows of the CUDA-graph bucket", per_call=True),
    _batch("tokens", "sum of the extend lengths of a ragged batch", per_call=True),
    _batch("req_rows", "rows of the request-to-slot table, pad row 0 included", per_call=False),
    _batch("max_context", "columns of the request-to-slot table", per_call=False),
    _batch("num_slots", "rows of the KV pools, pad slot 0 included", per_call=False),
    _batch("dp_ranks", "data-parallel ranks", per_call=False),
    _algorithm("num_steps", "draft depth"),
    _algorithm("topk", "branching of the draft tree"),
    _algorithm("num_draft_tokens", "verify width per request, root included"),
    _algorithm("accept_width", "row width of the accept table"),
    _algorithm("num_aux", "number of target layers whose hidden states feed the draft"),
    _target("target_hidden", "hidden size of the target"),
    _target("extend_hidden", "width of the target hidden states fed to the draft"),
    _target("target_vocab", "vocabulary of the target"),
    _target("target_layers", "decoder layers of the target"),
    _target("target_heads", "query heads of the target, per tensor-parallel rank"),
    _target("target_kv_heads", "key/value heads of the target, per tensor-parallel rank"),
    _target("target_head_dim", "width of one attention head of the target"),
    _target("target_ffn", "intermediate size of the target's MLP, per tensor-parallel rank"),
    _draft("draft_hidden", "hidden size of the draft"),
    _draft("recurrent_hidden", "width that recurs in the draft loop"),
    _draft("draft_vocab", "vocabulary of the draft's head"),
    _draft("draft_layers", "decoder layers of the draft"),
    _draft("draft_heads", "query heads of the draft, per tensor-parallel rank"),
    _draft("draft_kv_heads", "key/value heads of the draft, per tensor-parallel rank"),
    _draft("draft_head_dim", "width of one attention head of the draft"),
    _draft("draft_ffn", "intermediate size of the draft's MLP, per tensor-parallel rank"),
)

# Declarations happen at import, once per name; nothing at run time writes here.
_names: dict[str, DimName] = {dim.name: dim for dim in _BUILT_IN}


def declare(
    name: str, *, owner: Owner | str, meaning: str = "", per_call: bool | None = None
) -> DimName:
    """Add `name` to the vocabulary; repeating the same declaration changes nothing.

    `per_call` names (the default for owner `batch`) are bound by the tensors of one call, the
    others take their number from Dims. Raises ShapecheckError for a name that is not an
    identifier, an unknown owner, or a name already declared differently.
    """
    if (
        not (name.isascii() and name.isidentifier())
        or keyword.iskeyword(name)
        or name.startswith("_")
    ):
        raise ShapecheckError(
            f"declare({name!r}): an axis name is an ASCII identifier that does not start with '_'; "
            "rename it, for example 'draft_rank'"
        )
    try:
        whose = Owner(owner)
    except ValueError:
        raise ShapecheckError(
            f"declare({name!r}, owner={owner!r}): the owner is one of "
            + ", ".join(Owner)
            + "; name the model or the part of the engine that chooses this size"
        ) from None
    if per_call is None:
        per_call = whose is Owner.BATCH
    dim = DimName(name=name, owner=whose, meaning=meaning, per_call=per_call)
    known = _names.get(name)
    if known is not None and (known.owner, known.per_call) != (dim.owner, dim.per_call):
        raise ShapecheckError(
            f"declare({name!r}, owner={str(whose)!r}): already declared with owner "
            f"{str(known.owner)!r} ({'per call' if known.per_call else 'from Dims'}); "
            "keep one meaning per name, choose another name"
        )
    return _names.setdefault(name, dim)


def lookup(name: str) -> DimName | None:
    """The declaration of `name`, or None when it is not in the vocabulary."""
    return _names.get(name)


def names() -> tuple[str, ...]:
    """Every declared name, in order of declaration."""
    return tuple(_names)


def near_misses(name: str, more: Iterable[str] = ()) -> list[str]:
    """Declared names, and those of `more`, that look like `name`, best first: SHP102's hint."""
    return difflib.get_close_matches(name, [*_names, *more], n=3, cutoff=0.75)
