"""The ring of attention against float64, and the cuts it is launched with."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from engine.kernels.attention_cuts import FEW, SOME, RingCut, ring_cut
from engine.kernels.launch import overlaps
from engine.kernels.mask_words import mask_words
from engine.kernels.paged_attention import paged_attention, paged_attention_reference
from engine.kernels.stream_tile import SHARED_BYTES

GROUP, KV_HEADS, SLOTS, COLUMNS = 4, 2, 900, 400
CUTS = [
    pytest.param(width, rows, cut, id=f"{width}-{rows}-{programs}")
    for width in (64, 128)
    for rows in (16, 32, 64)
    for programs in (FEW, SOME, SOME + 1)
    if (cut := ring_cut(programs, rows, width=width)) is not None
]
SHAPES = [
    pytest.param(64, 16, RingCut(columns=128, slices=2, slice_y=32, tall=1, slots=3)),
    pytest.param(128, 32, RingCut(columns=64, slices=1, slice_y=32, tall=2, slots=2)),
    pytest.param(64, 64, RingCut(columns=64, slices=4, slice_y=16, tall=2, slots=5)),
]


@pytest.mark.parametrize(("width", "rows", "cut"), CUTS + SHAPES)
def test_cuts_fit_a_multiprocessor(width: int, rows: int, cut: RingCut) -> None:
    assert 2 * 2 * cut.slots * cut.block * width <= SHARED_BYTES
    assert rows % (16 * cut.tall) == 0
    assert cut.columns % cut.block == 0
    assert cut.columns % 64 == 0, "the portable kernel takes the same splits"


@pytest.mark.gpu
@pytest.mark.skipif(not overlaps(), reason="needs a Hopper card")
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize(("width", "rows", "cut"), CUTS + SHAPES)
def test_ring(
    width: int,
    rows: int,
    cut: RingCut,
    chained: bool,
    whole: bool,
    draw: Callable[..., Tensor],
    blank: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    generator = torch.Generator().manual_seed(5)
    prefixes = [0, 300, 1, 128, 320, 77, 255, 333]
    batch, tokens, tail = len(prefixes), rows // GROUP, 17
    mask = torch.rand(batch, tokens, tail, generator=generator) < 0.5
    mask[0] = False
    plan = {
        "table_PM": torch.randint(1, SLOTS, (batch + 1, COLUMNS), generator=generator).cuda(),
        "row_B": (torch.randperm(batch, generator=generator) + 1).cuda(),
        "prefix_B": torch.tensor(prefixes).cuda(),
        "tail_BW": torch.randint(1, SLOTS, (batch, tail), generator=generator).cuda(),
    }
    query = draw(batch * tokens, GROUP * KV_HEADS, width)
    keys, values = draw(SLOTS, KV_HEADS, width), draw(SLOTS, KV_HEADS, width)
    split = 448 if whole or not cut.columns else cut.columns
    splits = -(-COLUMNS // split)
    out = paged_attention(
        query, keys, values, **plan, word_T=mask_words(mask.cuda()), split=split,
        part_TQSE=blank(len(query), query.shape[1], splits, width, kind=torch.float32),
        weight_TQS=blank(len(query), query.shape[1], splits, kind=torch.float32),
        out_TQE=blank(*query.shape), ring=cut, chained=chained,
    )  # fmt: skip
    reference = paged_attention_reference(
        query.double(), keys.double(), values.double(), **plan, mask_BRW=mask.cuda()
    )
    assert not out[:tokens].any(), "a row that sees nothing is zero"
    assert_close(out, reference)
