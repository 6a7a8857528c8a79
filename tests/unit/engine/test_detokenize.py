"""Incremental text equals the decoded whole, and never shows half a character."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from engine.detokenize import Detokenizer


def decode_bytes(ids) -> str:
    """One id per byte; 256 and above are special and have no text."""
    return bytes(i for i in ids if i < 256).decode("utf-8", errors="replace")


def sentence_pieces() -> Tokenizer:
    """Word pieces with a leading-space mark and a token per byte for everything else."""
    words = ["▁the", "▁cat", "s", "▁", "é", "."]
    vocab = {f"<0x{byte:02X}>": byte for byte in range(256)}
    vocab |= {word: 256 + place for place, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return tokenizer


PIECES = sentence_pieces()


def decode_pieces(ids) -> str:
    return PIECES.decode(list(ids))


def run(decode, ids, prompt=()):
    detokenizer = Detokenizer(decode, prompt)
    return [detokenizer.push(token) for token in ids], detokenizer.flush()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=20), st.text(max_size=8))
def test_bytes_of_a_text_come_out_as_whole_characters(text, prompt):
    text = text.replace("�", "")
    pieces, rest = run(decode_bytes, text.encode(), prompt.encode())
    assert "".join(pieces) == text
    assert rest == ""
    assert all("�" not in piece for piece in pieces)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*"a€😀é".encode(), 0x80, 0xED, 0xFF, 0xC0]), max_size=24))
def test_any_bytes_end_in_the_decoded_whole(ids):
    pieces, rest = run(decode_bytes, ids)
    assert "".join(pieces) + rest == decode_bytes(ids)


@st.composite
def piece_ids(draw):
    """Ids of words, and of characters written byte by byte."""
    ids: list[int] = []
    for _ in range(draw(st.integers(0, 12))):
        if draw(st.booleans()):
            ids.append(draw(st.integers(256, 261)))
        else:
            ids += draw(st.sampled_from(["ß", "€", "😀", "日本"])).encode()
    return ids


@settings(max_examples=200, deadline=None, derandomize=True)
@given(piece_ids(), piece_ids())
def test_a_decoder_that_strips_the_first_space_needs_the_prompt(prompt, ids):
    pieces, rest = run(decode_pieces, ids, prompt)
    assert decode_pieces(prompt) + "".join(pieces) + rest == decode_pieces([*prompt, *ids])
    assert all("�" not in piece for piece in pieces)


def test_tokens_that_straddle_characters_are_not_taken_for_broken_bytes():
    # Each token ends one character and begins the next.
    euro = "€".encode()
    table = {0: b"a" + euro[:1], 1: euro[1:] + euro[:1], 2: euro[1:]}

    def decode(ids):
        return b"".join(table[i] for i in ids).decode("utf-8", errors="replace")

    pieces, rest = run(decode, [0, 1, 1, 1, 1, 1, 1, 2])
    assert pieces == ["a", *["€"] * 7]
    assert rest == ""


def test_a_character_appears_with_its_last_byte():
    pieces, rest = run(decode_bytes, "a😀b".encode())
    assert pieces == ["a", "", "", "", "😀", "b"]
    assert rest == ""


def test_bytes_that_form_no_character_are_shown_four_tokens_late():
    pieces, rest = run(decode_bytes, [0x80] * 6 + [ord("a")])
    assert pieces == ["", "", "", "", "�", "�", "����a"]
    assert rest == ""


def test_an_unfinished_character_is_flushed_as_broken():
    pieces, rest = run(decode_bytes, [ord("a"), 0xE2, 0x82])
    assert (pieces, rest) == (["a", "", ""], "�")


@pytest.mark.parametrize("special", [256, 300])
def test_a_token_without_text_keeps_the_context(special):
    assert "".join(run(decode_bytes, [special, ord("a"), special, ord("b")])[0]) == "ab"
