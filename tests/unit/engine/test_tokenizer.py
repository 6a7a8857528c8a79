"""Tokenizers: round trips, special tokens, chat, and agreement with transformers."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
import tokenizers
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers

from engine.errors import CheckpointError, EngineError
from engine.models.loader.gguf import GgufCheckpoint
from engine.models.loader.safetensors import SafetensorsCheckpoint
from engine.models.seeded import tiny_config
from engine.tokenizer import BpeTokenizer, ByteTokenizer, Tokenizer, load_tokenizer

TEXTS = [
    "Hello world 1234, it's 9 o'clock.",
    "  two  spaces\n\n\tand tabs \r\n",
    "def f(x):\n    return x ** 2  # naïve café",
    "日本語 и кириллица 👩‍💻🇩🇪",
    "",
]


@settings(deadline=None, derandomize=True)
@given(st.text())
def test_bytes_round_trip(text: str) -> None:
    text = text.encode("utf-8", errors="replace").decode("utf-8")
    tokenizer = ByteTokenizer()
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_bytes_of_no_character_are_replaced() -> None:
    assert ByteTokenizer().decode([0x68, 0xE6, 256]) == "h\ufffd"


def byte_level(folder: Path) -> tokenizers.Tokenizer:
    """A byte-level tokenizer without merges, saved as a model's folder has it."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = tokenizers.Tokenizer(
        models.BPE(vocab={c: n for n, c in enumerate(alphabet)}, merges=[])
    )
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    inner.add_special_tokens(["<|end|>"])
    inner.save(str(folder / "tokenizer.json"))
    return inner


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that opens as a checkpoint: one empty safetensors file."""
    header = b"{}"
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    return tmp_path


def load(folder: Path) -> BpeTokenizer:
    config = tiny_config(hidden=64).model_copy(update={"eos_ids": ()})
    tokenizer = load_tokenizer(SafetensorsCheckpoint(folder), config)
    assert isinstance(tokenizer, BpeTokenizer)
    return tokenizer


@pytest.mark.parametrize("text", TEXTS)
def test_folder_round_trip(text: str, folder: Path) -> None:
    inner = byte_level(folder)
    tokenizer = load(folder)
    assert tokenizer.vocab == inner.get_vocab_size()
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_folder_names_its_end_token(folder: Path) -> None:
    inner = byte_level(folder)
    settings = folder / "tokenizer_config.json"
    for named in ("<|end|>", {"content": "<|end|>"}):
        settings.write_text(json.dumps({"eos_token": named}))
        assert load(folder).eos_ids == (inner.token_to_id("<|end|>"),)
    assert load(folder).decode([inner.token_to_id("<|end|>")]) == ""


def test_folder_without_a_tokenizer(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json does not exist; save"):
        load(folder)


def test_corrupt_tokenizer_file(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is no tokenizer file"):
        load(folder)


def test_chat_template(folder: Path) -> None:
    byte_level(folder)
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    assert load(folder).chat([{"role": "user", "content": "hi"}]) == "<user>hi"


def test_chat_template_is_not_trusted(folder: Path) -> None:
    byte_level(folder)
    template = "{{ messages.__class__.__mro__[1].__subclasses__() }}"
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    with pytest.raises(EngineError, match="chat template refuses"):
        load(folder).chat([{"role": "user", "content": "hi"}])


def test_no_chat_template() -> None:
    with pytest.raises(EngineError, match="no chat template; give a plain prompt"):
        ByteTokenizer().chat([{"role": "user", "content": "hi"}])


@pytest.mark.network
def test_smollm2_tokenizer(smollm2: Path) -> None:
    checkpoint = GgufCheckpoint(smollm2)
    tokenizer = load_tokenizer(checkpoint, checkpoint.config)
    theirs = transformers.AutoTokenizer.from_pretrained(smollm2.parent, gguf_file=smollm2.name)
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert ids == theirs.encode(text, add_special_tokens=False)
        assert tokenizer.decode(ids) == text
    assert tokenizer.vocab == 49152
    assert tokenizer.eos_ids == (2,)
    prompt = tokenizer.chat([{"role": "user", "content": "Hi"}])
    assert prompt.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer.encode("<|im_start|>user<|im_end|>") == [1, 4093, 2]
    assert tokenizer.decode([1, 4093, 2]) == "user"


@pytest.mark.parametrize("kind", ["gpt-2", "smollm", "qwen2", "llama-bpe"])
@pytest.mark.parametrize("text", TEXTS)
def test_every_pre_tokenizer_keeps_the_text(kind: str, text: str, tmp_path: Path) -> None:
    """Splitting a text differently changes its ids, never what they decode to."""
    tokenizer = from_metadata(tmp_path, kind)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_pre_tokenizers_split_numbers_as_their_models_do(tmp_path: Path) -> None:
    """With merges for 1 2 -> 12 and 12 3 -> 123, the longest run of digits shows the rule."""
    lengths = {}
    for kind in ("gpt-2", "smollm", "qwen2", "llama-bpe"):
        tokenizer = from_metadata(tmp_path, kind)
        lengths[kind] = len(tokenizer.encode("1231"))
    assert lengths == {"gpt-2": 2, "smollm": 4, "qwen2": 4, "llama-bpe": 2}
    assert len(from_metadata(tmp_path, "llama-bpe").encode("12312")) == 2
    assert len(from_metadata(tmp_path, "smollm").encode("12312")) == 5


def test_unknown_pre_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"pre-tokenizer 'klingon' is not known \(known: gpt"):
        from_metadata(tmp_path, "klingon")


def from_metadata(folder: Path, kind: str) -> Tokenizer:
    """The tokenizer of a GGUF file that holds little else: bytes, and two merges of digits."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    file = folder / f"{kind}.gguf"
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_block_count(1)
    writer.add_embedding_length(8)
    writer.add_feed_forward_length(8)
    writer.add_head_count(1)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(kind)
    writer.add_token_list([*alphabet, "12", "123", "<|end|>"])
    writer.add_token_types([1] * (len(alphabet) + 2) + [3])
    writer.add_token_merges(["1 2", "12 3"])
    writer.add_eos_token_id(len(alphabet) + 2)
    writer.add_tensor("output_norm.weight", np.zeros(8, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    checkpoint = GgufCheckpoint(file)
    return load_tokenizer(checkpoint, checkpoint.config)
