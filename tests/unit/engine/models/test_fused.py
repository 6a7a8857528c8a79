"""FusedLM equals CausalLM: same rows, same logits, same keys and values in the pool."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton", reason="the fused forward is Triton's")

import engine.models.fused
from engine.attention.base import Block, Ragged
from engine.attention.sdpa import SdpaBackend
from engine.attention.triton_paged import TritonBackend
from engine.errors import EngineError
from engine.kernels.tiles import Product
from engine.kernels.wide_rows import WideTile
from engine.kv.pool import KVPool
from engine.kv.table import RequestTable
from engine.models.config import ModelConfig
from engine.models.fused import NARROW, FusedLM
from engine.models.llama import CausalLM
from engine.models.seeded import seed_weights

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PREFIX, SLOTS = 9, 60


def make(architecture: str, *, aux_layers: tuple[int, ...] = ()) -> tuple[CausalLM, FusedLM]:
    """A seeded tiny model, gains and biases away from one and zero, and its fused twin."""
    config = ModelConfig.from_hf(
        {
            "architectures": [architecture],
            "vocab_size": 37,
            "hidden_size": 40,
            "intermediate_size": 56,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "max_position_embeddings": 64,
            "tie_word_embeddings": True,
            "eos_token_id": 0,
        },
        source="<tiny>",
    )
    model = CausalLM(config, aux_layers=aux_layers)
    seed_weights(model, 5)
    generator = torch.Generator().manual_seed(6)
    for name, parameter in model.named_parameters():
        if "bias" in name or "norm" in name:
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    fused = FusedLM(config, aux_layers=aux_layers)
    fused.load_state_dict(model.state_dict())
    return model.to(DEVICE), fused.to(DEVICE)


def test_invariance_where_torch_would_take_the_products() -> None:
    config = make("LlamaForCausalLM")[0].config.model_copy(update={"mlp_bias": True})
    with pytest.raises(EngineError, match=r"batch_invariant has no kernels .* leave it off"):
        FusedLM(config, invariant=True)


def pools(config: ModelConfig) -> tuple[KVPool, KVPool]:
    """Two equal pools of random contents."""
    generator = torch.Generator().manual_seed(8)
    pair = tuple(
        KVPool(config, num_slots=SLOTS, dtype=torch.float32, device=DEVICE) for _ in range(2)
    )
    for kind in ("keys_ZCE", "values_ZCE"):
        for first, second in zip(*(getattr(pool, kind) for pool in pair), strict=True):
            first.copy_(torch.randn(first.shape, generator=generator))
            second.copy_(first)
    return pair[0], pair[1]


def table_and_block(requests: int, rows: int) -> tuple[RequestTable, Block, Tensor]:
    """A table of scattered slots, a chain of rows behind each prefix, and their positions."""
    order = torch.randperm(SLOTS - 1, generator=torch.Generator().manual_seed(9)) + 1
    table = RequestTable(rows=requests + 1, columns=PREFIX + rows, device=DEVICE)
    width = PREFIX + rows
    taken = []
    for request in range(requests):
        taken.append(table.take_row())
        table.write(taken[-1], 0, order[request * width : (request + 1) * width].tolist())
    req_rows = torch.tensor(taken, device=DEVICE)
    tails = table.slots_PM[req_rows, PREFIX:]
    work = Block(
        req_rows_B=req_rows,
        prefix_lens_B=torch.full((requests,), PREFIX, device=DEVICE),
        slots_BR=tails,
        tail_slots_BW=tails,
        mask_BRW=torch.ones(rows, rows, dtype=torch.bool, device=DEVICE)
        .tril()
        .expand(requests, -1, -1),
        max_prefix=PREFIX,
    )
    positions = torch.arange(PREFIX, width, device=DEVICE).repeat(requests)
    return table, work, positions


@torch.inference_mode()
@pytest.mark.parametrize(
    ("architecture", "requests", "rows"),
    [("Llama", 1, 1), ("Llama", 2, 3), ("Qwen2", 1, 3), ("Qwen3", 1, 3)],
)
def test_block(architecture: str, requests: int, rows: int) -> None:
    model, fused = make(f"{architecture}ForCausalLM", aux_layers=(1, 0))
    table, work, positions = table_and_block(requests, rows)
    ids = torch.randint(0, 37, positions.shape, generator=torch.Generator().manual_seed(4))
    plain_pool, fused_pool = pools(model.config)
    wanted = model(ids.to(DEVICE), positions, SdpaBackend(plain_pool, table).plan_block(work))
    got = fused(ids.to(DEVICE), positions, TritonBackend(fused_pool, table).plan_block(work))
    torch.testing.assert_close(got.rows_TH, wanted.rows_TH, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(got.aux_TX, wanted.aux_TX, rtol=1e-4, atol=1e-4)
    logits = fused.logits(got.rows_TH)
    torch.testing.assert_close(logits, model.logits(wanted.rows_TH), rtol=1e-4, atol=1e-4)
    assert logits.dtype == torch.float32
    for kind in ("keys_ZCE", "values_ZCE"):
        for new, old in zip(getattr(fused_pool, kind), getattr(plain_pool, kind), strict=True):
            torch.testing.assert_close(new, old, rtol=1e-4, atol=1e-4)


def wide_tile(product: Product, *, tokens: int, outputs: int, inputs: int, rings: bool) -> WideTile:
    """A tile for these tiny matrices."""
    parts = 1 if product in (Product.GATE_UP, Product.HEAD) else 2
    return WideTile(block_o=64, block_i=16, parts=parts, warps=4, stages=2)


@torch.inference_mode()
@pytest.mark.parametrize("architecture", ["Llama", "Qwen2", "Qwen3"])
@pytest.mark.parametrize("way", ["torch", "tiles", "invariant"])
def test_block_wider_than_the_token_tile(
    architecture: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole rows at once, or some requests at a time; requests have no part in one another."""
    invariant = way == "invariant"
    monkeypatch.setattr(engine.models.fused, "WIDEST", 4)
    monkeypatch.setattr(engine.models.fused, "NARROW", 4)
    monkeypatch.setattr(
        engine.models.fused, "choose_wide", wide_tile if way == "tiles" else lambda *_, **__: None
    )
    model, fused = make(f"{architecture}ForCausalLM", aux_layers=(1, 0))
    fused.invariant = invariant
    table, work, positions = table_and_block(3, 2)
    ids = torch.randint(0, 37, positions.shape, generator=torch.Generator().manual_seed(4))
    plain_pool, fused_pool = pools(model.config)
    wanted = model(ids.to(DEVICE), positions, SdpaBackend(plain_pool, table).plan_block(work))
    got = fused(ids.to(DEVICE), positions, TritonBackend(fused_pool, table).plan_block(work))
    torch.testing.assert_close(got.rows_TH, wanted.rows_TH, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(got.aux_TX, wanted.aux_TX, rtol=1e-4, atol=1e-4)
    logits = fused.logits(got.rows_TH)
    torch.testing.assert_close(logits, model.logits(wanted.rows_TH), rtol=1e-4, atol=1e-4)
    for kind in ("keys_ZCE", "values_ZCE"):
        for new, old in zip(getattr(fused_pool, kind), getattr(plain_pool, kind), strict=True):
            torch.testing.assert_close(new, old, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_an_invariant_row_is_the_same_in_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit: alone, beside others, and in a forward that is cut into parts."""
    monkeypatch.setattr(engine.models.fused, "WIDEST", 4)
    _, fused = make("LlamaForCausalLM")
    fused.invariant = True
    table, work, positions = table_and_block(3, 2)
    ids = torch.randint(0, 37, positions.shape, generator=torch.Generator().manual_seed(4))
    pool = pools(fused.config)[0]
    plan = TritonBackend(pool, table, invariant=True).plan_block(work)
    together = fused.logits(fused(ids.to(DEVICE), positions, plan).rows_TH)
    alone = [
        fused.logits(fused(ids[rows].to(DEVICE), positions[rows], part).rows_TH)
        for rows, part in plan.parts(2)
    ]
    assert len(alone) == 3
    assert torch.equal(torch.cat(alone), together)


@torch.inference_mode()
def test_prefill() -> None:
    model, fused = make("LlamaForCausalLM")
    table, _, _ = table_and_block(1, 3)
    plain_pool, fused_pool = pools(model.config)
    work = Ragged(req_rows=(1,), prefix_lens=(0,), extend_lens=(7,))
    ids, positions = torch.arange(7, device=DEVICE), torch.arange(7, device=DEVICE)
    wanted = model(ids, positions, SdpaBackend(plain_pool, table).plan_ragged(work))
    got = fused(ids, positions, TritonBackend(fused_pool, table).plan_ragged(work))
    torch.testing.assert_close(got.rows_TH, wanted.rows_TH, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_logits_of_no_rows_and_of_many() -> None:
    model, fused = make("LlamaForCausalLM")
    for rows in (0, NARROW, NARROW + 1):
        rows_TH = torch.randn(rows, 40, generator=torch.Generator().manual_seed(2)).to(DEVICE)
        wanted = model.logits(rows_TH)
        torch.testing.assert_close(fused.logits(rows_TH), wanted, rtol=1e-4, atol=1e-4)
