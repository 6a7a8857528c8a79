"""Kernel tests run on the GPU if there is one, else through Triton's interpreter on the CPU.

The interpreter is chosen when a kernel is decorated, so the environment is set before any is
imported.
"""

import importlib.util
import os
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

HAS_TRITON = importlib.util.find_spec("triton") is not None
HAS_GPU = torch.cuda.is_available()

if not HAS_TRITON:
    collect_ignore_glob = ["test_*.py"]
elif not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"
    import triton.runtime.interpreter as interpreter

    _patch = interpreter._patch_lang_tensor

    def _patch_index(tensor: type, scope: object) -> None:
        # Triton 3.6 calls int() on arrays of one element, which NumPy refuses since 2.4.
        _patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = _patch_index


def pytest_report_header() -> str | None:
    """Names the one reason for which kernel tests are left out."""
    return None if HAS_TRITON else "kernel tests are not collected: triton is not installed"


@pytest.fixture
def device() -> str:
    """Where the kernels run."""
    return "cuda" if HAS_GPU else "cpu"


@pytest.fixture
def dtype() -> torch.dtype:
    """The interpreter has no arithmetic for bf16."""
    return torch.bfloat16 if HAS_GPU else torch.float32


@pytest.fixture
def draw(device: str, dtype: torch.dtype) -> Callable[..., Tensor]:
    """Draws normal numbers from a seed, and knows no others."""
    generator = torch.Generator().manual_seed(0)

    def normal(*sizes: int) -> Tensor:
        return torch.randn(*sizes, generator=generator).to(device, dtype)

    return normal


@pytest.fixture
def blank(device: str, dtype: torch.dtype) -> Callable[..., Tensor]:
    """Makes outputs in which what no kernel wrote is NaN."""

    def nan(*sizes: int, kind: torch.dtype = dtype) -> Tensor:
        return torch.full(sizes, float("nan"), device=device, dtype=kind)

    return nan


@pytest.fixture
def assert_close(dtype: torch.dtype) -> Callable[[Tensor, Tensor], None]:
    """Asserts that the relative error in norm is rounding in the dtype of the run; NaN never
    passes.
    """
    bound = 1e-2 if dtype is torch.bfloat16 else 2e-6

    def check(result: Tensor, reference: Tensor) -> None:
        assert result.shape == reference.shape
        error = (result.double() - reference.double()).norm() / reference.double().norm()
        assert float(error) < bound, f"relative error {float(error):.2e}"

    return check
