"""A shape string is read whole or refused with a ContractTextError, whatever it holds."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shapecheck.dims import Poly, parse_shape
from shapecheck.errors import ContractTextError

GOOD = {
    "": [],
    "bs": ["bs"],
    "bs topk": ["bs", "topk"],
    "  bs \t topk ": ["bs", "topk"],
    "bs*num_draft_tokens": ["bs*num_draft_tokens"],
    "num_steps+1": ["num_steps+1"],
    "num_draft_tokens-1": ["num_draft_tokens-1"],
    "1+(num_steps-1)*topk": ["num_steps*topk-topk+1"],
    "bs 3 0": ["bs", "3", "0"],
    "2*bs": ["2*bs"],
}

BAD = [
    ("num_steps + 1", "SHP101", "num_steps+1"),
    ("bs num_steps + 1 topk", "SHP101", "write 'bs num_steps+1 topk'"),
    ("bs*", "SHP101", "without spaces"),
    ("* bs", "SHP101", "variadic"),
    ("draft-hidden", "SHP101", "draft_hidden"),
    ("...", "SHP101", "write out every axis"),
    ("... bs", "SHP101", "write out every axis"),
    ("_", "SHP101", "name the axis"),
    ("_bs", "SHP101", "name the axis"),
    ("*bs", "SHP101", "variadic"),
    ("#bs", "SHP101", "broadcastable"),
    ("?bs", "SHP101", "tree"),
    ("{bs}", "SHP101", "f-string"),
    ("bs.x", "SHP101", "attribute"),
    ("bs(1)", "SHP101", "use a name"),
    ("bs[0]", "SHP101", "use a name"),
    ("bs/2", "SHP101", "use a name"),
    ("bs//2", "SHP101", "use a name"),
    ("bs**2", "SHP101", "use a name"),
    ("-1", "SHP101", "whole axis"),
    ("3-5", "SHP101", "from 0"),
    ("True", "SHP101", "use a name"),
    ("None", "SHP101", "use a name"),
    ("'bs'", "SHP101", "use a name"),
    ("bs=4", "SHP101", "use a name"),
    ("1.5", "SHP101", "use a name"),
    ("1_000", "SHP101", "plain decimal"),
    ("0x10", "SHP101", "plain decimal"),
    ("1e3", "SHP101", "plain decimal"),
    ("2bs", "SHP101", "plain decimal"),
    ("007", "SHP101", "plain decimal"),
    ("9" * 150, "SHP101", "from 0"),
    ("9" * 9000, "SHP101", "at most"),
    ("bs\u00b2", "SHP101", "ASCII"),
    ("\uff42\uff53", "SHP101", "ASCII"),
    ("(" * 90 + "bs" + ")" * 90, None, ""),
    ("(" * 9000 + "bs" + ")" * 9000, "SHP101", "at most"),
    ("+".join(["bs"] * 9000), "SHP101", "at most"),
    ("*".join(["(bs+topk+num_steps+1)"] * 9), "SHP101", "too many terms"),
    ("bs\x00", "SHP101", "use a name"),
    ("draft_hiden", "SHP102", "did you mean draft_hidden? else add it"),
    ("wholly_new", "SHP102", "vocabulary: add it with shapecheck.declare('wholly_new'"),
    ("bs*draft_hiden", "SHP102", "draft_hidden"),
]


@pytest.mark.parametrize(("text", "axes"), GOOD.items())
def test_reads(text: str, axes: list[str]) -> None:
    assert [str(axis) for axis in parse_shape(text).axes] == axes


@pytest.mark.parametrize(("text", "code", "hint"), BAD, ids=lambda value: str(value)[:24])
def test_refuses(text: str, code: str | None, hint: str) -> None:
    if code is None:
        assert parse_shape(text).names() == {"bs"}
        return
    with pytest.raises(ContractTextError) as caught:
        parse_shape(text)
    message = str(caught.value)
    assert message.startswith(code)
    assert hint in message
    assert len(message) < 1000


PIECES = ("bs", "topk", "num_steps", "\xbd", "\xe9", "\x00", *"019+-*/().,_#?{}[]'= ")


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=30).map("".join)))
@example("\ud800")
@example("bs if")
@example("1if")
@example("lambda:bs")
def test_never_another_error(text: str) -> None:
    try:
        outcome = str(len(parse_shape(text).axes))
    except ContractTextError as error:
        outcome = str(error)[:6]
    assert outcome in ("SHP101", "SHP102", str(len(text.split())))


NAMES = st.sampled_from(["bs", "topk", "num_steps", "draft_hidden"])
PRODUCTS = st.tuples(st.integers(1, 99), st.lists(NAMES, min_size=1, max_size=3))


@given(st.lists(PRODUCTS, min_size=1, max_size=3))
def test_what_is_printed_reads_back(products: list[tuple[int, list[str]]]) -> None:
    axis: Poly[str] = Poly.constant(0)
    for coefficient, names in products:
        term: Poly[str] = Poly.constant(coefficient)
        for name in names:
            term = term * Poly.symbol(name)
        axis = axis + term
    assert parse_shape(str(axis)).axes == (axis,)
