"""launch: the few device functions by which consecutive kernels overlap.

Programmatic dependent launch lets a kernel start while the one before it still runs. Three rules
keep that safe, and every kernel of a forward follows them, its head included: it releases its
successor at once; before it waits it reads only weights, and what is complete since the forward's
first kernel (plans, positions, tables, the cached prefix); and that one is launched unchained,
after all that is older. Stores come after the wait, so no memory is written that an older kernel
still reads.
"""

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language.extra import cuda


@functools.cache
def overlaps() -> bool:
    """Whether kernels may be chained: on Hopper and later cards, never in Triton's interpreter.

    The same cards hold the rings of stream_tile in their shared memory.
    """
    if triton.knobs.runtime.interpret or not torch.cuda.is_available():
        return False
    return torch.cuda.get_device_capability() >= (9, 0)


@functools.cache
def multiplies_warpgroups() -> bool:
    """Whether the card has Hopper's warpgroup matrix instructions, which later ones lack."""
    return overlaps() and torch.cuda.get_device_capability()[0] == 9


def assert_dense(*tensors: Tensor) -> None:
    """Kernels get a pointer and no strides: a view with gaps would be read as its neighbours."""
    for tensor in tensors:
        assert tensor.is_contiguous(), (
            f"a view of shape {tuple(tensor.shape)} and strides {tensor.stride()} reaches a "
            "kernel that reads it without gaps; call contiguous() where it is made"
        )


@triton.jit
def release_successor(CHAINED: tl.constexpr):
    """The next kernel of the stream may start to fill the multiprocessors this one leaves idle."""
    if CHAINED:
        cuda.gdc_launch_dependents()


@triton.jit
def wait_for_producers(CHAINED: tl.constexpr):
    """Everything the kernels before this one wrote is complete and visible afterwards."""
    if CHAINED:
        cuda.gdc_wait()


@triton.jit
def prefetch(pointers):
    """The cache line behind each pointer is on its way into the L2 cache."""
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;",
        "=r,l",
        [pointers.to(tl.int64, bitcast=True)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@gluon.jit
def stream_release(CHAINED: gl.constexpr):
    """release_successor for Gluon kernels."""
    if CHAINED:
        gl.inline_asm_elementwise(
            "griddepcontrol.launch_dependents; // $0", "=r", [],
            dtype=gl.int32, is_pure=False, pack=1,
        )  # fmt: skip


@gluon.jit
def stream_wait(CHAINED: gl.constexpr):
    """wait_for_producers for Gluon kernels."""
    if CHAINED:
        gl.inline_asm_elementwise(
            "griddepcontrol.wait; // $0", "=r", [], dtype=gl.int32, is_pure=False, pack=1
        )
