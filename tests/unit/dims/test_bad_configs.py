"""A bad config or argument gets one sentence with place and remedy, never a traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapecheck import Dims, ShapecheckError
from shapecheck.dims.configs import read_pair

GOOD = {"hidden_size": 64, "vocab_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2}


def refusal(source: object, **arguments: object) -> str:
    """The text of the refusal; a config that is accepted fails the test."""
    with pytest.raises(ShapecheckError) as caught:
        Dims.from_configs(source, **{"algorithm": "ngram", "num_steps": 2, **arguments})  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    return message


VALUES = [
    ("hidden_size", "4096", "hidden_size is '4096'"),
    ("hidden_size", -1, "hidden_size is -1"),
    ("hidden_size", 0, "hidden_size is 0"),
    ("hidden_size", True, "hidden_size is True"),
    ("hidden_size", 4096.0, "hidden_size is 4096.0"),
    ("hidden_size", 2**40, "hidden_size is 1099511627776"),
    ("hidden_size", 10**400, "hidden_size is a number of 1329 bits"),
    ("hidden_size", [64], "hidden_size is a list of 1"),
    ("hidden_size", {"a": 1}, "hidden_size is an object"),
    ("hidden_size", float("nan"), "hidden_size is nan"),
    ("hidden_size", "x" * 10_000, "hidden_size is 'xxx"),
    ("hidden_size", None, "hidden_size is missing"),
    ("vocab_size", None, "vocab_size is missing"),
    ("num_hidden_layers", None, "num_hidden_layers is missing"),
    ("num_attention_heads", None, "num_attention_heads is missing"),
    ("num_attention_heads", 5, "64 does not divide among 5 attention heads"),
    ("num_key_value_heads", "8", "num_key_value_heads is '8'"),
    ("num_key_value_heads", 8, "is 8, which 4 attention heads cannot share"),
    ("num_key_value_heads", 3, "is 3, which 4 attention heads cannot share"),
    ("head_dim", -64, "head_dim is -64"),
    ("intermediate_size", [1, 2], "intermediate_size is a list of 2"),
    ("max_position_embeddings", 1.5, "max_position_embeddings is 1.5"),
    ("draft_vocab_size", "32000", "draft_vocab_size is '32000'"),
    ("target_hidden_size", 0, "target_hidden_size is 0"),
    ("num_nextn_predict_layers", -1, "num_nextn_predict_layers is -1"),
    ("eagle_config", 3, "eagle_config is 3"),
    ("eagle_config", {"eagle_aux_hidden_state_layer_ids": 3}, "layer_ids is 3"),
    ("eagle_aux_hidden_state_layer_ids", [1, "2"], "layer_ids is a list of 2"),
    ("eagle_aux_hidden_state_layer_ids", [1, -2], "layer_ids is a list of 2"),
    ("text_config", [1], "text_config is a list of 1"),
    ("text_config", {}, "text_config.hidden_size is missing"),
    ("torch_dtype", "complex64", "torch_dtype is 'complex64'"),
    ("torch_dtype", 16, "torch_dtype is 16"),
    ("architectures", "Llama", "architectures is 'Llama'"),
    ("architectures", [1], "architectures is a list of 1"),
    ("model_type", 7, "model_type is 7"),
]


@pytest.mark.parametrize(("key", "value", "found"), VALUES, ids=lambda value: str(value)[:24])
def test_bad_value(key: str, value: object, found: str) -> None:
    message = refusal({**GOOD, key: value})
    assert message.startswith("SHP903 unreadable-file: the target config: ")
    assert found in message
    assert any(word in message for word in ("set it to", "add the key", "add head_dim"))


def _write(tmp_path: Path, content: bytes) -> Path:
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "config.json").write_bytes(content)
    return folder


CONTENTS = [
    (b"", "is not JSON"),
    (b"{", "line 1 column 2"),
    (b'{"hidden_size": 64,}', "is not JSON"),
    (b"[1, 2]", "holds a list of 2, not an object"),
    (b'"text"', "holds 'text', not an object"),
    (b"null", "not an object"),
    (b"\xff\xfe\x00\x01", "is not UTF-8 text"),
    (b"[" * 200_000, "nesting too large"),
    (b'{"hidden_size": ' + b"9" * 5000 + b"}", "number or a nesting too large"),
    (b" " * (9 * 2**20), "has more than 8 MiB"),
]


@pytest.mark.parametrize(("content", "found"), CONTENTS, ids=lambda value: str(value)[:24])
def test_bad_file(tmp_path: Path, content: bytes, found: str) -> None:
    message = refusal(_write(tmp_path, content))
    assert message.startswith("SHP903 unreadable-file: broken/config.json: ")
    assert found in message


def test_a_byte_order_mark_is_harmless(tmp_path: Path) -> None:
    folder = _write(tmp_path, b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert Dims.from_configs(folder, algorithm="ngram", num_steps=1)["target_hidden"] == 64


def test_places_that_hold_no_config(tmp_path: Path) -> None:
    for place in (tmp_path / "absent", tmp_path, "", "\0", "meta-llama/Llama-3-8B", 5):
        message = refusal(place)
        assert message.startswith("SHP903 unreadable-file: ")
        assert "pass a config.json or the folder that holds it" in message


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "config.json"
    os.mkfifo(pipe)
    assert "is not a regular file" in refusal(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission(tmp_path: Path) -> None:
    folder = _write(tmp_path, b"{}")
    (folder / "config.json").chmod(0)
    assert "Permission denied" in refusal(folder)


ARGUMENTS = [
    ({"algorithm": "eagle4"}, "choose one of standalone"),
    ({"algorithm": None}, "choose one of standalone"),
    ({"num_steps": 0}, "num_steps is 0"),
    ({"num_steps": True}, "num_steps is True"),
    ({"num_steps": "3"}, "num_steps is '3'"),
    ({"num_steps": 4096}, "num_steps is 4096"),
    ({"topk": 0}, "topk is 0"),
    ({"tp": 0}, "tp is 0"),
    ({"draft_tp": -1}, "draft_tp is -1"),
    ({"num_draft_tokens": 1}, "num_draft_tokens is 1"),
    ({"num_draft_tokens": 2.5}, "num_draft_tokens is 2.5"),
    ({"num_aux": 3}, "only eagle3 reads several"),
    ({"algorithm": "eagle3", "num_aux": 0}, "num_aux is 0"),
    ({"draft": GOOD}, "ngram has no draft model"),
    ({"algorithm": "eagle"}, "needs a draft"),
    ({"algorithm": "none"}, "num_steps is 2: set it to 0"),
    ({"algorithm": "none", "num_steps": 0, "topk": 2}, "topk is 2"),
    ({"algorithm": "none", "num_steps": 0, "num_draft_tokens": 2}, "num_draft_tokens is 2"),
    ({"algorithm": "standalone", "draft": GOOD, "num_draft_tokens": 4}, "set it to 3"),
    ({"algorithm": "standalone", "draft": GOOD, "topk": 4}, "give num_draft_tokens (2 to 21"),
    (
        {"algorithm": "standalone", "draft": GOOD, "topk": 4, "num_draft_tokens": 22},
        "1+topk+(num_steps-1)*topk^2 = 21",
    ),
]


@pytest.mark.parametrize(("arguments", "found"), ARGUMENTS, ids=str)
def test_bad_argument(arguments: dict[str, object], found: str) -> None:
    message = refusal(GOOD, **arguments)
    assert message.startswith("SHP204 pair-mismatch: ")
    assert found in message


def test_the_widest_tree_is_allowed() -> None:
    dims = Dims.from_configs(
        GOOD, GOOD, algorithm="standalone", num_steps=2, topk=4, num_draft_tokens=21
    )
    assert (dims["num_draft_tokens"], dims["accept_width"]) == (21, 3)


KEYS = st.sampled_from([*GOOD, *(key for key, _, _ in VALUES)])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(KEYS, JSON, max_size=8), st.dictionaries(KEYS, JSON, max_size=8))
def test_any_object_is_read_or_refused(target: dict[str, object], draft: dict[str, object]) -> None:
    try:
        dims = Dims.from_configs(
            {**GOOD, **target}, {**GOOD, **draft}, algorithm="eagle3", num_steps=2
        )
    except ShapecheckError as error:
        outcome = str(error)[:3]
    else:
        outcome = "SHP" if dims["target_hidden"] > 0 else "a size below 1"
    assert outcome == "SHP"


def test_names_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "a\nb\x1b[31m"
    folder.mkdir()
    config = {**GOOD, "architectures": ["\x1b[31mLlama\n\x00"]}
    (folder / "config.json").write_text(json.dumps(config))
    pair = read_pair(folder, folder, algorithm="eagle", num_steps=2)
    shown = [*(size.origin for size in pair.dims().sizes.values()), pair.target.label]
    shown += [note.message for finding in pair.findings() for note in finding.notes]
    assert all(text.isprintable() for text in shown)
    assert r"\x1b[31mLlama\n\x00 (architectures in a\nb\x1b[31m/config.json)" in shown
