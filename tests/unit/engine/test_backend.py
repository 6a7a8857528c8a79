"""The backend of a config: which one it is, and what is said where it cannot run."""

from __future__ import annotations

import importlib.util

import pytest

import engine.backend
from engine.backend import Backend
from engine.config import EngineConfig
from engine.errors import EngineError

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the kernels are Triton's"
)


def config_of(**settings: object) -> EngineConfig:
    """A config whose device need not be here."""
    return EngineConfig.of(target="tiny").model_copy(update=settings)


@needs_triton
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_auto_takes_the_kernels_for_16_bits_on_cuda(dtype: str) -> None:
    assert Backend.of(config_of(device="cuda:0", dtype=dtype)).kernels
    assert not Backend.of(config_of(device="cuda:0")).kernels
    assert not Backend.of(config_of(dtype=dtype)).kernels
    assert not Backend.of(config_of(device="cuda:0", dtype=dtype, backend="torch")).kernels


@pytest.mark.parametrize(
    "settings",
    [{}, {"backend": "torch", "device": "cuda", "dtype": "bfloat16"}, {"device": "cuda"}],
    ids=str,
)
def test_invariance_without_kernels(settings: dict[str, object]) -> None:
    config = config_of(batch_invariant=True, **settings)
    with pytest.raises(EngineError, match="batch_invariant needs the Triton kernels") as caught:
        Backend.of(config)
    assert f"backend={config.backend!r}" in str(caught.value)
    assert str(caught.value).endswith("use backend='triton'")


@pytest.mark.parametrize(
    "settings", [{"backend": "triton"}, {"device": "cuda", "dtype": "bfloat16"}], ids=str
)
def test_no_triton(settings: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The text names the setting that was made, which may be "auto"."""
    monkeypatch.setattr(engine.backend.importlib.util, "find_spec", lambda name: None)
    config = config_of(**settings)
    with pytest.raises(EngineError, match="Triton is not installed; install triton or") as caught:
        Backend.of(config)
    assert f"backend={config.backend!r}" in str(caught.value)


@needs_triton
def test_kernels_on_a_cpu_need_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(EngineError, match="use device='cuda' or set TRITON_INTERPRET=1"):
        Backend.of(config_of(backend="triton"))
    monkeypatch.setenv("TRITON_INTERPRET", "true")
    assert Backend.of(config_of(backend="triton", batch_invariant=True)) == Backend(
        kernels=True, invariant=True
    )


def test_static_buffers_are_for_cuda_unless_asked_for() -> None:
    assert not config_of().replays
    assert config_of(device="cuda").replays
    assert config_of(graphs=True).replays
    assert not config_of(device="cuda", graphs=False).replays
