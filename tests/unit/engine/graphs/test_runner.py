"""Replay on static buffers: buckets, padding, clones, and the checks of the copy-in."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.carriers import VerifyRows
from engine.config import EngineConfig
from engine.dims import Memory, build_dims
from engine.graphs.buffers import DraftStepBuffers, VerifyBuffers, VerifyExtendBuffers
from engine.graphs.runner import Bucket, Replayed, Runner
from engine.models.seeded import tiny_config, tiny_eagle_config
from engine.sampling import SamplingParams
from shapecheck import Dims, ShapeContractError

from ..conftest import SHAPES, tiny

CPU = torch.device("cpu")


@pytest.fixture
def dims() -> Dims:
    target = tiny_config(hidden=64, layers=4)
    config = EngineConfig.of(algorithm="eagle3", draft="head", **SHAPES["tree"])
    memory = Memory(req_rows=5, max_context=40, num_slots=100)
    return build_dims(config, target, tiny_eagle_config(target, version="eagle3"), memory)


def live(dims: Dims, rows: int) -> VerifyRows:
    width = dims["num_draft_tokens"]
    return VerifyRows(
        draft_tokens=torch.full((rows, width), 7),
        tree_mask=torch.ones(rows, width, width, dtype=torch.bool),
        positions=torch.full((rows, width), 3),
        seq_lens=torch.full((rows,), 3),
        slots=torch.arange(1, rows * width + 1).view(rows, width),
        req_rows_index=torch.arange(1, rows + 1),
        max_seq_len=3,
    )


def runner_of(dims: Dims, forward: object) -> Runner:
    graphs = Replayed(dims=dims, max_requests=6, max_seq_len=40, device=CPU)
    runner = graphs.wrap(forward, VerifyBuffers)
    assert isinstance(runner, Runner)
    return runner


class Seen:
    """A forward that keeps what it read."""

    def __init__(self) -> None:
        self.rows: list[VerifyRows] = []

    def __call__(self, rows: VerifyRows) -> VerifyRows:
        fields = ("draft_tokens", "tree_mask", "positions", "seq_lens", "slots", "req_rows_index")
        copies = {name: getattr(rows, name).clone() for name in fields}
        self.rows.append(VerifyRows(max_seq_len=rows.max_seq_len, **copies))
        return VerifyRows(max_seq_len=rows.max_seq_len, **copies)


def test_the_smallest_bucket_that_holds_the_batch(dims: Dims) -> None:
    seen = Seen()
    runner = runner_of(dims, seen)
    assert [bucket.size for bucket in runner.buckets] == [1, 2, 4, 6]
    for rows, wanted in ((1, 1), (2, 2), (3, 4), (5, 6), (6, 6), (0, 1)):
        out = runner(live(dims, rows))
        assert len(out.seq_lens) == rows
        assert len(seen.rows[-1].seq_lens) == wanted


def test_padding_points_at_the_pad_row_and_the_pad_slot(dims: Dims) -> None:
    """Also after a larger batch has used the same rows."""
    seen = Seen()
    runner = runner_of(dims, seen)
    runner(live(dims, 4))
    runner(live(dims, 3))
    padded = seen.rows[-1]
    assert not padded.draft_tokens[3:].any()
    assert not padded.positions[3:].any()
    assert not padded.slots[3:].any()
    assert padded.req_rows_index.tolist() == [1, 2, 3, 0]
    assert padded.seq_lens.tolist() == [3, 3, 3, 0]
    assert torch.equal(padded.tree_mask[3], torch.eye(dims["num_draft_tokens"]).bool())


def test_outputs_outlive_the_next_replay(dims: Dims) -> None:
    runner = runner_of(dims, Seen())
    first = runner(live(dims, 2))
    runner(replace(live(dims, 2), draft_tokens=torch.full((2, dims["num_draft_tokens"]), 9)))
    assert (first.draft_tokens == 7).all()


def test_buckets_share_no_tensor(dims: Dims) -> None:
    graphs = Replayed(dims=dims, max_requests=4, max_seq_len=40, device=CPU)
    for kind in (VerifyBuffers, DraftStepBuffers, VerifyExtendBuffers):
        runner = graphs.wrap(Seen(), kind)
        assert isinstance(runner, Runner)
        pointers = [
            getattr(bucket.buffers, name).data_ptr()
            for bucket in runner.buckets
            for name in ("seq_lens", "req_rows_index", "positions")
        ]
        if kind is VerifyExtendBuffers:
            pointers += [bucket.buffers.select_index.data_ptr() for bucket in runner.buckets]
        assert len(set(pointers)) == len(pointers)


@pytest.mark.parametrize("kind", [VerifyBuffers, DraftStepBuffers, VerifyExtendBuffers])
def test_buffers_have_the_widths_of_dims(kind: type[VerifyBuffers], dims: Dims) -> None:
    buffers = kind.allocate(dims, 3, 40, CPU)
    buffers.check(dims)
    assert buffers.seq_lens.shape == (3,)


def test_extend_buffers_carry_the_targets_width(dims: Dims) -> None:
    buffers = VerifyExtendBuffers.allocate(dims, 3, 40, CPU)
    assert buffers.hidden_states is not None
    assert buffers.hidden_states.shape == (3 * 8, 3 * 64), "num_aux * Ht, not 3 * Hd"
    with pytest.raises(ShapeContractError) as caught:
        replace(buffers, hidden_states=torch.zeros(3 * 8, 3 * 32)).check(dims)
    assert "extend_hidden is 192" in str(caught.value)


def test_draft_step_buffers_have_a_row_for_every_branch(dims: Dims) -> None:
    buffers = DraftStepBuffers.allocate(dims, 4, 40, CPU)
    assert buffers.hidden_states is not None
    assert buffers.hidden_states.shape == (4 * 3, 32)
    with pytest.raises(ShapeContractError) as caught:
        replace(buffers, hidden_states=torch.zeros(4, 32)).check(dims)
    assert "hidden_states" in str(caught.value)


def test_copy_in_refuses_what_does_not_fit(dims: Dims, full: None) -> None:
    buffers = VerifyBuffers.allocate(dims, 2, 40, CPU)
    with pytest.raises(ShapeContractError, match="SHP401"):
        buffers.fill(live(dims, 3))
    narrow = dims.with_sizes(num_draft_tokens=(4, "a chain"))
    with pytest.raises(ShapeContractError, match="SHP401"):
        buffers.fill(live(narrow, 1))
    with pytest.raises(ShapeContractError, match="SHP401"):
        buffers.fill(replace(live(dims, 1), seq_lens=torch.zeros(1, dtype=torch.int32)))


def test_live_rows_of_a_bucket_with_several_rows_a_request(dims: Dims) -> None:
    """Outputs of K rows a request are cut at K times the live requests."""

    def forward(step: DraftStepBuffers) -> DraftStepBuffers:
        return replace(step, tail_slots=step.tail_slots.clone())

    bucket = Bucket(forward, DraftStepBuffers.allocate(dims, 4, 40, CPU), 4)
    small = DraftStepBuffers.allocate(dims, 3, 40, CPU)
    assert small.hidden_states is not None
    small.hidden_states += 1
    out = bucket(_as_live(small), 3)
    assert out.hidden_states is not None
    assert out.hidden_states.shape == (9, 32)
    assert (out.hidden_states == 1).all()


def _as_live(buffers: DraftStepBuffers) -> object:
    from engine.carriers import DraftStep

    names = DraftStep.__dataclass_fields__
    return DraftStep(**{name: getattr(buffers, name) for name in names})


def test_a_batch_in_every_bucket_is_the_eager_batch() -> None:
    """From one request to five and down again, as requests join and finish."""
    prompts = ["a", "hello", "zzz", "hello world", "what"]
    params = [
        SamplingParams(max_tokens=5 + 4 * number, temperature=0.0, ignore_eos=True)
        for number in range(5)
    ]
    outputs = []
    for graphs in (False, True):
        llm = tiny("eagle3", graphs=graphs, max_requests=5, prefill_chunk=3, **SHAPES["tree"])
        outputs.append([output.token_ids for output in llm.generate(prompts, params)])
    assert outputs[0] == outputs[1]
