"""Packed texts: what was put in comes out, and what was edited is told."""

from __future__ import annotations

from shapecheck.static.texts import Texts

TEXTS = {"a.py": "x = 1\n", "b.py": "y = '\u4e2d\udc80'\n"}


def test_texts_come_out_as_they_were_put_in() -> None:
    assert dict(Texts.of(TEXTS)) == TEXTS
    assert len(Texts.of(TEXTS)) == 2


def test_only_the_edited_texts_are_told_and_packed_again() -> None:
    before = Texts.of(TEXTS)
    now = {**TEXTS, "a.py": "x = 2\n"}
    after = Texts.of(now, before)
    assert before.edited(now) == {"a.py": "x = 1\n"}
    assert dict(after) == now
    assert after.packed["b.py"] is before.packed["b.py"]
    assert after.packed["a.py"] != before.packed["a.py"]


def test_the_digest_is_that_of_the_texts_and_their_files() -> None:
    digest = Texts.of(TEXTS).digest
    assert Texts.of(dict(reversed(TEXTS.items()))).digest == digest
    assert Texts.of({**TEXTS, "a.py": ""}).digest != digest
    assert Texts.of({"c.py": TEXTS["a.py"], "b.py": TEXTS["b.py"]}).digest != digest
