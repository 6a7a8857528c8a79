"""Kernel tests run on the GPU if there is one, else through Triton's interpreter on the CPU."""

import importlib.util
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

HAS_GPU = torch.cuda.is_available()

if importlib.util.find_spec("triton") is None:
    collect_ignore_glob = ["test_*.py"]


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
