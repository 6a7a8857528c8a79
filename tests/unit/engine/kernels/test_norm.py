"""rms_norm, silu_mul and embed_rows against torch."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from engine.kernels.activation import silu_mul, silu_mul_reference
from engine.kernels.embedding import embed_rows, embed_rows_reference
from engine.kernels.norm import rms_norm, rms_norm_reference
from engine.kernels.row_tile import ScaledRows


@pytest.mark.parametrize("tokens", [0, 1, 7])
@pytest.mark.parametrize("added", [False, True])
def test_rms_norm(
    tokens: int,
    added: bool,
    draw: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    x, gain = draw(tokens, 72), draw(72)
    residual = draw(tokens, 72) if added else None
    total, normed = rms_norm(x, gain, eps=1e-5, residual_TH=residual)
    assert normed.shape == (tokens, 72)
    if not tokens:
        return
    wide = None if residual is None else residual.double()
    total_64, normed_64 = rms_norm_reference(x.double(), gain.double(), eps=1e-5, residual_TH=wide)
    assert_close(total, total_64)
    assert_close(normed, normed_64)


def test_parts_of_a_product_enter_the_norm_added_up(
    draw: Callable[..., Tensor], assert_close: Callable[[Tensor, Tensor], None]
) -> None:
    parts, gain, residual = draw(3, 4, 72).float(), draw(72), draw(4, 72)
    total, normed = rms_norm(parts, gain, eps=1e-5, residual_TH=residual)
    assert total.dtype == normed.dtype == residual.dtype
    total_64, normed_64 = rms_norm_reference(
        parts.double().sum(0), gain.double(), eps=1e-5, residual_TH=residual.double()
    )
    assert_close(total, total_64)
    assert_close(normed, normed_64)


@pytest.mark.parametrize("tokens", [0, 3])
def test_silu_mul(
    tokens: int, draw: Callable[..., Tensor], assert_close: Callable[[Tensor, Tensor], None]
) -> None:
    x = draw(tokens, 2 * 1100)
    out = silu_mul(x)
    assert out.shape == (tokens, 1100)
    if tokens:
        assert_close(out, silu_mul_reference(x.double()))


def test_embedding_enters_the_first_norm(
    device: str,
    draw: Callable[..., Tensor],
    blank: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    table, gain = draw(50, 1100), draw(1100)
    ids = torch.tensor([7, 49, 7], device=device)
    rows = ScaledRows(x_TI=blank(3, 1100), square_TG=blank(3, 2, kind=torch.float32))
    out = embed_rows(ids, table, gain, out_TH=blank(3, 1100), next_rows=rows)
    reference = embed_rows_reference(ids, table)
    assert torch.equal(out, reference)
    assert_close(rows.x_TI, reference.double() * gain.double())
    assert_close(rows.square_TG.sum(-1), reference.double().pow(2).sum(-1))
