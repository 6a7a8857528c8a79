"""Id domains: tags that travel with the memory, and the tables they may not index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import pytest
import torch
from jaxtyping import Int64
from torch import Tensor

from shapecheck import Dims, contract, ids
from shapecheck.errors import ShapecheckError
from shapecheck.symbolic import Trace, trace


def codes(t) -> list[str]:
    return [finding.code for finding in t.report().findings]


@pytest.fixture
def t():
    with trace() as running:
        yield running


def test_argmax_counts_along_its_axis(t):
    ids = t.tensor("bs draft_vocab").argmax(-1)
    torch.nn.functional.embedding(ids, t.tensor("target_vocab target_hidden"))
    assert codes(t) == ["SHP305"]
    assert t.report().findings[0].dims.found == "draft_vocab"


@pytest.mark.parametrize(
    "produce",
    [
        lambda x: x.topk(3, -1).indices,
        lambda x: x.topk(3).indices,
        lambda x: x.sort(-1).indices,
        lambda x: x.argsort(dim=-1),
        lambda x: x.max(-1).indices,
        lambda x: torch.multinomial(x, 2),
    ],
)
def test_every_producer_is_known(t, produce):
    ids = produce(t.tensor("bs draft_vocab"))
    assert str(t.domains.of(ids)) == "draft_vocab ids"


@pytest.mark.parametrize(
    "move",
    [
        lambda ids: ids.view(-1),
        lambda ids: ids.unsqueeze(1).expand(-1, 2, -1),
        lambda ids: ids[:, 1:],
        lambda ids: ids.to(torch.int32),
        lambda ids: torch.cat([ids, ids]),
        lambda ids: torch.stack([ids, ids]),
        lambda ids: ids.clone().flatten().repeat_interleave(2),
        lambda ids: torch.where(ids > 0, ids, torch.zeros_like(ids)),
        lambda ids: torch.zeros_like(ids).copy_(ids),
        lambda ids: ids[torch.zeros((2,), dtype=torch.int64)],
    ],
)
def test_moving_ids_keeps_their_domain(t, move):
    ids = t.tensor("bs draft_vocab").topk(3).indices
    assert str(t.domains.of(move(ids))) == "draft_vocab ids"


def test_a_write_into_a_part_marks_the_buffer(t):
    buffer = torch.zeros((t.size("bs"), 4), dtype=torch.int64)
    buffer[:, 1:] = t.tensor("bs draft_vocab").topk(3).indices
    assert str(t.domains.of(buffer)) == "draft_vocab ids"


def test_arithmetic_makes_other_numbers_of_ids(t):
    ids = t.tensor("bs draft_vocab").argmax(-1)
    assert t.domains.of(ids // 2) is None
    assert t.domains.of(ids + 1) is None


def test_an_offset_leads_to_the_other_vocabulary(t):
    ids = t.tensor("bs draft_vocab").argmax(-1)
    d2t = t.offset(t.tensor("draft_vocab", torch.int64), "draft_vocab", "target_vocab")
    mapped = ids + d2t[ids]
    assert str(t.domains.of(mapped)) == "target_vocab ids"
    hot = d2t + torch.arange(t.size("draft_vocab"))
    assert str(t.domains.of(hot[ids])) == "target_vocab ids"
    assert codes(t) == []


def test_an_offset_does_not_apply_twice(t):
    ids = t.ids(t.tensor("bs", torch.int64), "target_vocab")
    d2t = t.offset(t.tensor("draft_vocab", torch.int64), "draft_vocab", "target_vocab")
    ids + d2t[ids]
    assert codes(t) == ["SHP305"]


@pytest.mark.parametrize(
    "use",
    [
        lambda table, ids: table[ids],
        lambda table, ids: table.index_select(0, ids),
        lambda table, ids: table.gather(0, ids.unsqueeze(1)),
        lambda table, ids: table.index_put_((ids,), torch.zeros(())),
        lambda table, ids: table.scatter_(0, ids.unsqueeze(1), 1.0),
    ],
)
def test_every_lookup_is_checked(t, use):
    use(t.tensor("target_vocab target_hidden"), t.tensor("bs", torch.int64, ids="draft"))
    assert "SHP305" in codes(t)


def test_ids_of_two_vocabularies_do_not_share_a_tensor(t):
    draft, target = (t.tensor("bs", torch.int64, ids=model) for model in ("draft", "target"))
    torch.cat([draft, target])
    assert codes(t) == ["SHP305"]


def test_positions_along_other_axes_index_what_they_like(t):
    picked = t.tensor("bs topk").topk(2).indices
    t.tensor("bs topk").gather(1, picked)
    assert codes(t) == []


def test_one_vocabulary_by_permission(t):
    t.allow("target_vocab == draft_vocab", reason="one tokenizer")
    torch.nn.functional.embedding(
        t.tensor("bs", torch.int64, ids="draft"), t.tensor("target_vocab target_hidden")
    )
    assert codes(t) == []
    assert t.report().allowed[0].reason == "one tokenizer"


def test_an_axis_outside_the_vocabulary_is_refused(t):
    with pytest.raises(ShapecheckError, match="draft_vocap"):
        t.ids(t.tensor("bs", torch.int64), "draft_vocap")


class Vocabularies:
    def __init__(self, dims: Dims) -> None:
        self.dims = dims

    @contract
    def drafted(
        self, tokens: Annotated[Int64[Tensor, "bs"], ids("draft")], bs: Int64[Tensor, "bs"]
    ) -> None: ...

    @contract
    def verified(
        self, tokens: Annotated[Int64[Tensor, "bs"], ids("target")], bs: Int64[Tensor, "bs"]
    ) -> None: ...


def _said(t: Trace) -> Tensor:
    rows = t.tensor("bs", torch.int64)
    Vocabularies(t.dims).drafted(rows, t.tensor("bs", torch.int64))
    return rows


SOURCES: dict[str, tuple[Callable[[Trace], Tensor], str]] = {
    "an operator": (lambda t: t.tensor("bs draft_vocab").argmax(-1), "argmax"),
    "a contract": (_said, "argument tokens of Vocabularies.drafted"),
    "the trace": (lambda t: t.ids(t.tensor("bs", torch.int64), "draft_vocab"), "t.ids"),
    "a copy": (lambda t: t.tensor("bs draft_vocab").argmax(-1).clone(), "argmax"),
}
USES: dict[str, Callable[[Trace, Tensor], object]] = {
    "a table": lambda t, ids: t.tensor("target_vocab target_hidden")[ids],
    "a contract": lambda t, ids: Vocabularies(t.dims).verified(ids, t.tensor("bs", torch.int64)),
    "ids of the other": lambda t, ids: torch.cat([ids, t.tensor("bs target_vocab").argmax(-1)]),
}


@pytest.mark.parametrize("setting", ["equal", "draft wider"])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("source", SOURCES)
def test_ids_of_the_other_vocabulary_name_both_sides(source: str, use: str, setting: str) -> None:
    make, said = SOURCES[source]
    with trace(setting=setting) as t:
        USES[use](t, make(t))
    (finding,) = t.report().findings
    assert finding.code == "SHP305"
    notes = {note.label: note for note in finding.notes}
    assert notes[f"draft_vocab ids since {said}"].span is not None
    other = {
        "a table": "[target_vocab, target_hidden]",
        "a contract": "contract",
        "ids of the other": "target_vocab ids since argmax",
    }
    assert notes[other[use]].span is not None
    if use == "a contract":
        said_of = {note.message.partition(" comes from ")[0] for note in finding.notes}
        assert {"target_vocab", "draft_vocab"} <= said_of
