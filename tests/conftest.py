"""What holds for every test: without a GPU, Triton kernels run through its interpreter.

The interpreter is chosen when a kernel is decorated, so the environment is set before any is
imported.
"""

import importlib.util
import os

import torch

HAS_TRITON = importlib.util.find_spec("triton") is not None

if HAS_TRITON and not torch.cuda.is_available():
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
