"""Dims of realistic pairs: every number, owner and origin that follows from two configs."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapecheck import Dims, ShapecheckError
from shapecheck.dims import Owner

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
TINY = {"hidden_size": 64, "vocab_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2}


def tiny(**changes: object) -> dict[str, object]:
    return {**TINY, **changes}


def numbers(dims: Dims, *names: str) -> dict[str, int | None]:
    return {name: dims.get(name) for name in names}


def test_standalone_pair() -> None:
    dims = Dims.from_configs(
        CONFIGS / "llama-3-8b", CONFIGS / "llama-3-1b", algorithm="standalone", num_steps=3
    )
    assert {name: dims.get(name) for name in dims.names()} == {
        "target_hidden": 4096,
        "target_vocab": 128256,
        "target_layers": 32,
        "target_heads": 32,
        "target_kv_heads": 8,
        "target_head_dim": 128,
        "target_ffn": 14336,
        "draft_hidden": 2048,
        "draft_vocab": 128256,
        "draft_layers": 16,
        "draft_heads": 32,
        "draft_kv_heads": 8,
        "draft_head_dim": 64,
        "draft_ffn": 8192,
        "num_steps": 3,
        "topk": 1,
        "num_draft_tokens": 4,
        "accept_width": 4,
        "num_aux": None,
        "extend_hidden": None,
        "recurrent_hidden": None,
        "max_context": 8192,
    }
    assert (dims.target_dtype, dims.draft_dtype) == ("bfloat16", "bfloat16")
    assert dims.origin("target_hidden") == "hidden_size in llama-3-8b/config.json"
    assert dims.origin("draft_hidden") == "hidden_size in llama-3-1b/config.json"
    assert dims.origin("target_head_dim") == (
        "hidden_size/num_attention_heads = 4096/32 in llama-3-8b/config.json"
    )
    assert dims.origin("extend_hidden") == "standalone feeds no target hidden states to a draft"
    assert dims.owner("target_hidden") is Owner.TARGET
    assert dims.owner("recurrent_hidden") is Owner.DRAFT
    assert dims.owner("max_context") is Owner.BATCH
    assert dims.owner("accept_width") is Owner.ALGORITHM
    with pytest.raises(ShapecheckError, match="a field of this width must be None"):
        dims["recurrent_hidden"]


def test_eagle3_head_of_another_width_under_tensor_parallelism() -> None:
    dims = Dims.from_configs(
        CONFIGS / "llama-3-70b",
        CONFIGS / "eagle3-llama-70b",
        algorithm="eagle3",
        num_steps=4,
        topk=8,
        num_draft_tokens=32,
        tp=16,
    )
    assert numbers(
        dims, "target_hidden", "draft_hidden", "num_aux", "extend_hidden", "recurrent_hidden"
    ) == {
        "target_hidden": 8192,
        "draft_hidden": 6144,
        "num_aux": 3,
        "extend_hidden": 3 * 8192,
        "recurrent_hidden": 6144,
    }
    assert dims.origin("extend_hidden") == "num_aux*target_hidden = 3*8192"
    assert dims.origin("num_aux") == "default of EAGLE-3"
    assert dims["draft_vocab"] == 32000
    assert (dims["target_heads"], dims["target_kv_heads"], dims["target_ffn"]) == (4, 1, 1792)
    assert dims.origin("target_kv_heads").startswith("8 key/value heads replicated over tp=16")
    assert (dims["draft_heads"], dims["draft_kv_heads"]) == (3, 1)
    assert (dims["num_draft_tokens"], dims["accept_width"]) == (32, 5)


def test_a_replicated_draft_keeps_its_heads() -> None:
    dims = Dims.from_configs(
        CONFIGS / "qwen2-7b",
        CONFIGS / "qwen2-0.5b",
        algorithm="standalone",
        num_steps=2,
        tp=4,
        draft_tp=1,
    )
    assert (dims["target_heads"], dims["draft_heads"], dims["draft_kv_heads"]) == (7, 14, 2)


def test_aux_layers_of_the_head_count() -> None:
    pair = (CONFIGS / "llama-3-8b", CONFIGS / "eagle3-llama-8b")
    dims = Dims.from_configs(*pair, algorithm="eagle3", num_steps=1)
    assert dims["num_aux"] == 3
    assert dims.origin("num_aux") == (
        "length of eagle_config.eagle_aux_hidden_state_layer_ids in eagle3-llama-8b/config.json"
    )


def test_speculator_layout_nests_the_layer_and_keeps_the_head_outside() -> None:
    dims = Dims.from_configs(
        CONFIGS / "qwen2-7b", CONFIGS / "speculator", algorithm="eagle3", num_steps=3
    )
    assert numbers(dims, "draft_hidden", "draft_vocab", "num_aux") == {
        "draft_hidden": 3584,
        "draft_vocab": 32000,
        "num_aux": 3,
    }
    assert dims.origin("draft_hidden") == (
        "transformer_layer_config.hidden_size in speculator/config.json"
    )


def test_multimodal_target_is_read_through_its_text_config() -> None:
    dims = Dims.from_configs(CONFIGS / "multimodal", algorithm="ngram", num_steps=4)
    assert dims["target_hidden"] == 2048
    assert dims.origin("target_vocab") == "text_config.vocab_size in multimodal/config.json"
    assert dims.target_dtype == "bfloat16"


def test_mtp_layers_inside_the_target() -> None:
    dims = Dims.from_configs(CONFIGS / "mtp-moe", algorithm="mtp", num_steps=1)
    assert numbers(dims, "draft_layers", "extend_hidden", "recurrent_hidden", "draft_vocab") == {
        "draft_layers": 1,
        "extend_hidden": 7168,
        "recurrent_hidden": 7168,
        "draft_vocab": 129280,
    }
    assert dims.get("target_kv_heads") is None
    assert "latent attention" in dims.origin("target_kv_heads")


def test_qwen3_head_dim_stands_in_its_config_or_its_class() -> None:
    named = Dims.from_configs(CONFIGS / "qwen3-0.6b", algorithm="ngram", num_steps=1)
    assert (named["target_hidden"], named["target_head_dim"]) == (1024, 128)
    unnamed = Dims.from_configs(tiny(model_type="qwen3"), algorithm="ngram", num_steps=1)
    assert unnamed["target_head_dim"] == 128


@pytest.mark.parametrize(
    ("width", "expected"), [(None, 5), (12, 12)], ids=["from the depth", "given"]
)
def test_ngram_has_no_draft(width: int | None, expected: int) -> None:
    dims = Dims.from_configs(TINY, algorithm="ngram", num_steps=4, num_draft_tokens=width)
    assert (dims["num_draft_tokens"], dims["accept_width"]) == (expected, expected)
    assert dims.draft_dtype is None
    assert dims.get("draft_hidden") is None
    assert dims.origin("draft_hidden") == "ngram has no draft model"


def test_no_speculation_verifies_the_root_alone() -> None:
    dims = Dims.from_configs(TINY, algorithm="none", num_steps=0)
    assert numbers(dims, "num_draft_tokens", "accept_width", "num_steps") == {
        "num_draft_tokens": 1,
        "accept_width": 1,
        "num_steps": 0,
    }


def test_mappings_defaults_and_aliases() -> None:
    dims = Dims.from_configs(
        tiny(torch_dtype="torch.float16"), tiny(hidden_size=32), algorithm="standalone", num_steps=1
    )
    assert dims.origin("target_hidden") == "hidden_size in the target config"
    assert dims["target_kv_heads"] == 4
    assert dims.origin("target_kv_heads").endswith("which has no num_key_value_heads")
    assert dims.get("target_ffn") is None
    assert dims.get("max_context") is None
    assert dims.target_dtype == "float16"
    assert dims.draft_dtype == "float16", "a draft without a dtype is loaded in its target's"


def test_dtype_goes_before_torch_dtype() -> None:
    config = tiny(dtype="bfloat16", torch_dtype="float16")
    assert Dims.from_configs(config, algorithm="ngram", num_steps=1).target_dtype == "bfloat16"


def test_a_file_and_its_folder_are_the_same_config() -> None:
    by_folder = Dims.from_configs(CONFIGS / "llama-3-8b", algorithm="ngram", num_steps=1)
    by_file = Dims.from_configs(
        str(CONFIGS / "llama-3-8b" / "config.json"), algorithm="ngram", num_steps=1
    )
    assert by_file == by_folder


def test_equal_folder_names_are_told_apart(tmp_path: Path) -> None:
    for name, source in (("big", "llama-3-8b"), ("small", "llama-3-1b")):
        folder = tmp_path / name / "hf"
        folder.mkdir(parents=True)
        (folder / "config.json").write_bytes((CONFIGS / source / "config.json").read_bytes())
    dims = Dims.from_configs(
        tmp_path / "big" / "hf", tmp_path / "small" / "hf", algorithm="standalone", num_steps=1
    )
    assert dims.origin("target_hidden") == "hidden_size in big/hf/config.json"
    assert dims.origin("draft_hidden") == "hidden_size in small/hf/config.json"


def test_a_pair_that_cannot_work_makes_no_dims() -> None:
    with pytest.raises(ShapecheckError) as caught:
        Dims.from_configs(
            CONFIGS / "llama-3-8b", CONFIGS / "eagle3-llama-70b", algorithm="eagle3", num_steps=3
        )
    assert str(caught.value).startswith("SHP201 extend_hidden: the head reads")
    assert str(caught.value).endswith("; use the head that was trained for this target")
    assert caught.value.diagnostic is not None
    assert caught.value.diagnostic.code == "SHP201"


def test_agrees_with_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    for name in ("llama-3-8b", "llama-3-1b", "qwen2-7b", "qwen3-0.6b"):
        theirs = transformers.AutoConfig.from_pretrained(CONFIGS / name)
        ours = Dims.from_configs(CONFIGS / name, algorithm="ngram", num_steps=1)
        assert ours["target_hidden"] == theirs.hidden_size
        assert ours["target_kv_heads"] == theirs.num_key_value_heads
        width = (
            getattr(theirs, "head_dim", None) or theirs.hidden_size // theirs.num_attention_heads
        )
        assert ours["target_head_dim"] == width
        assert ours["target_ffn"] == theirs.intermediate_size
        assert ours["max_context"] == theirs.max_position_embeddings
        assert f"torch.{ours.target_dtype}" == str(theirs.dtype)
