"""A setting that makes no sense is refused with what to do."""

from __future__ import annotations

import pytest
import torch

from engine.config import DEFAULT_POOL_BYTES, EngineConfig, as_path
from engine.errors import EngineError
from engine.models.seeded import tiny_config


def test_defaults_run_the_default_model() -> None:
    config = EngineConfig.of()
    assert (config.target, config.algorithm, config.draft) == ("smollm2", "ngram", None)
    assert config.torch_dtype is torch.float32


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"algorithm": "medusa"}, "algorithm: 'medusa' is not known; choose one of none, ngram"),
        ({"algorithm": "eagel"}, "'eagel' is not known; did you mean 'eagle'? choose one of"),
        ({"algorithm": 3}, "algorithm: Input should be a valid string"),
        ({"draft": "x"}, "leave draft out or choose standalone or eagle or eagle3"),
        ({"algorithm": "standalone"}, "'standalone' needs draft="),
        ({"algorithm": "none", "draft": "x"}, "'none' runs without a draft model; leave draft out"),
        ({"algorithm": "ngram", "topk": 2}, "leave topk at 1"),
        ({"algorithm": "ngram", "num_steps": 0}, "num_steps=0 drafts nothing"),
        ({"target": "tiny", "algorithm": "eagle", "draft": "x"}, "brings its own drafts"),
        ({"ngram_min": 5, "ngram_max": 3}, "ngram_min=5 is above ngram_max=3; lower it"),
        ({"dtype": "int8"}, "dtype: Input should be 'float32'"),
        ({"max_requests": 0}, "max_requests: Input should be greater than or equal to 1"),
        ({"tempo": 3}, "tempo: no such setting; choose one of target, draft, algorithm"),
        ({"num_step": 3}, "num_step: no such setting; did you mean 'num_steps'? choose one of"),
        ({"device": "gpu"}, "device 'gpu' is not known; use cpu or cuda"),
    ],
    ids=str,
)
def test_refusals(values: dict[str, object], wanted: str) -> None:
    with pytest.raises(EngineError) as caught:
        EngineConfig.of(**values)
    assert wanted in str(caught.value)


def test_slots_fit_the_memory_and_one_request() -> None:
    tiny = tiny_config(hidden=64)
    assert EngineConfig.of(max_requests=2).slots(tiny) == 2 * EngineConfig.of().columns(tiny)
    wide = tiny.model_copy(update={"layers": 16, "kv_heads": 16, "head_dim": 128})
    slots = EngineConfig.of(max_requests=1000).slots(wide)
    assert slots == DEFAULT_POOL_BYTES // (2 * 16 * 16 * 128 * 4)
    huge = wide.model_copy(update={"layers": 2048})
    assert EngineConfig.of().slots(huge) == EngineConfig.of().columns(huge)


def test_plain_decoding_has_no_steps() -> None:
    assert EngineConfig.of(algorithm="none").steps() == 0
    assert EngineConfig.of(num_steps=7).steps() == 7


def test_unknown_model_path() -> None:
    with pytest.raises(EngineError, match="neither 'smollm2' nor an existing folder"):
        as_path("/no/such/model")
