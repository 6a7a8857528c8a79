"""paged_attention against float64, and its independence of the batch and of the split."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from engine.kernels.mask_words import mask_words
from engine.kernels.paged_attention import paged_attention, paged_attention_reference

HEADS, KV_HEADS, WIDTH, SLOTS = 4, 2, 32, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A batch over a random table."""

    q: Tensor
    keys: Tensor
    values: Tensor
    plan: dict[str, Tensor]

    def run(self, blank: Callable[..., Tensor], *, split: int = 64, splits: int = 4) -> Tensor:
        """The kernel's output."""
        tokens = len(self.q)
        plan = dict(self.plan)
        words = mask_words(plan.pop("mask_BRW"))
        return paged_attention(
            self.q, self.keys, self.values, **plan, word_T=words, split=split,
            part_TQSE=blank(tokens, HEADS, splits, WIDTH, kind=torch.float32),
            weight_TQS=blank(tokens, HEADS, splits, kind=torch.float32),
            out_TQE=blank(tokens, HEADS, WIDTH),
        )  # fmt: skip


def make(
    draw: Callable[..., Tensor], device: str, *, prefixes: list[int], rows: int, tail: int
) -> Case:
    generator = torch.Generator().manual_seed(3)
    batch = len(prefixes)
    mask = torch.rand(batch, rows, tail, generator=generator) < 0.5
    mask[:, :, 0] = True
    return Case(
        q=draw(batch * rows, HEADS, WIDTH),
        keys=draw(SLOTS, KV_HEADS, WIDTH),
        values=draw(SLOTS, KV_HEADS, WIDTH),
        plan={
            "table_PM": torch.randint(1, SLOTS, (batch + 1, 200), generator=generator).to(device),
            "row_B": (torch.randperm(batch, generator=generator) + 1).to(device),
            "prefix_B": torch.tensor(prefixes).to(device),
            "tail_BW": torch.randint(1, SLOTS, (batch, tail), generator=generator).to(device),
            "mask_BRW": mask.to(device),
        },
    )


@pytest.mark.parametrize(
    ("prefixes", "rows", "tail"),
    [([130, 5], 1, 1), ([64, 0, 127], 6, 6), ([70], 3, 9), ([100, 63], 8, 64)],
)
def test_prefix_and_masked_tail(
    prefixes: list[int],
    rows: int,
    tail: int,
    device: str,
    draw: Callable[..., Tensor],
    blank: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    case = make(draw, device, prefixes=prefixes, rows=rows, tail=tail)
    reference = paged_attention_reference(
        case.q.double(), case.keys.double(), case.values.double(), **case.plan
    )
    assert_close(case.run(blank), reference)
    assert_close(case.run(blank, split=128, splits=2), reference)
    assert_close(case.run(blank, split=256, splits=1), reference)


def test_row_that_sees_nothing_is_zero(
    device: str, draw: Callable[..., Tensor], blank: Callable[..., Tensor]
) -> None:
    case = make(draw, device, prefixes=[0, 9], rows=2, tail=3)
    case.plan["mask_BRW"][0] = False
    out = case.run(blank)
    assert not out[:2].any()
    assert out[2:].any(dim=-1).all()


def test_chain_of_rows_is_one_row_at_a_time(
    device: str,
    draw: Callable[..., Tensor],
    blank: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    case = make(draw, device, prefixes=[61], rows=5, tail=5)
    case.plan["mask_BRW"][0] = torch.ones(5, 5, dtype=torch.bool).tril()
    together = case.run(blank)
    table = case.plan["table_PM"].clone()
    table[case.plan["row_B"], 61:66] = case.plan["tail_BW"]
    for row in range(5):
        alone = Case(
            q=case.q[row : row + 1],
            keys=case.keys,
            values=case.values,
            plan={
                "table_PM": table,
                "row_B": case.plan["row_B"],
                "prefix_B": torch.tensor([61 + row], device=device),
                "tail_BW": case.plan["tail_BW"][:, row : row + 1],
                "mask_BRW": torch.ones(1, 1, 1, dtype=torch.bool, device=device),
            },
        )
        assert_close(alone.run(blank)[0], together[row])
        if device == "cuda":  # the interpreter's matrix product rounds by the number of rows
            assert torch.equal(alone.run(blank)[0], together[row])


@pytest.mark.parametrize("gap", ["tail_BW", "prefix_B", "row_B"])
def test_a_view_with_gaps_is_refused(
    gap: str, device: str, draw: Callable[..., Tensor], blank: Callable[..., Tensor]
) -> None:
    """It would be read as what stands next to it in memory."""
    case = make(draw, device, prefixes=[5, 9], rows=2, tail=3)
    dense = case.plan[gap]
    case.plan[gap] = torch.stack((dense, dense), dim=-1)[..., 0]
    with pytest.raises(AssertionError, match=r"strides .* call contiguous\(\)"):
        case.run(blank)
