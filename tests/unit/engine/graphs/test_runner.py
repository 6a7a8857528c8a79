"""Replay on static buffers: buckets, padding, clones, and the checks of the copy-in."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace

import pytest
import torch

from engine.carriers import DraftRoots, DraftTree, DrawnRoots, VerifyExtendInput, VerifyRows
from engine.config import EngineConfig
from engine.dims import Memory, build_dims
from engine.graphs.buffers import (
    DraftRootsBuffers,
    DrawnRootsBuffers,
    VerifyBuffers,
    VerifyExtendBuffers,
)
from engine.graphs.runner import Bucket, Replayed, Runner
from engine.models.seeded import tiny_config, tiny_eagle_config
from engine.observe.watch import watched
from engine.phases.draft_loop import DrawnLoop
from engine.sampling import BatchControls, SamplingParams, TreeLaw, draw_root
from shapecheck import Dims, ShapeContractError

from ..conftest import SHAPES, tiny

CPU = torch.device("cpu")


@pytest.fixture
def dims() -> Dims:
    target = tiny_config(hidden=64, layers=4)
    config = EngineConfig.of(algorithm="eagle3", draft="head", **SHAPES["tree"])
    memory = Memory(req_rows=5, max_context=40, num_slots=100)
    return build_dims(config, target, tiny_eagle_config(target, version="eagle3"), memory)


class Names:
    """How often each span began."""

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()

    def begin(self, name: str) -> None:
        self.begun[name] += 1

    def end(self, name: str, error: BaseException | None) -> None:
        assert error is None


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


def test_a_batch_that_no_bucket_holds_is_refused(dims: Dims) -> None:
    runner = runner_of(dims, Seen())
    with pytest.raises(ShapeContractError, match=r"7 requests, .* 6 rows; .* raise max_requests"):
        runner(live(dims, 7))


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
    for kind in (VerifyBuffers, VerifyExtendBuffers):
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


@pytest.mark.parametrize(
    "kind", [VerifyBuffers, DraftRootsBuffers, DrawnRootsBuffers, VerifyExtendBuffers]
)
def test_buffers_have_the_widths_of_dims(kind: type[VerifyBuffers], dims: Dims) -> None:
    buffers = kind.allocate(dims, 3, 40, CPU)
    buffers.check(dims)
    assert getattr(buffers, "roots", buffers).seq_lens.shape == (3,)


def test_extend_buffers_carry_the_targets_width(dims: Dims) -> None:
    buffers = VerifyExtendBuffers.allocate(dims, 3, 40, CPU)
    assert buffers.hidden_states is not None
    assert buffers.hidden_states.shape == (3 * 8, 3 * 64), "num_aux * Ht, not 3 * Hd"
    with pytest.raises(ShapeContractError) as caught:
        replace(buffers, hidden_states=torch.zeros(3 * 8, 3 * 32)).check(dims)
    assert "extend_hidden is 192" in str(caught.value)


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
    """Outputs of N rows a request are cut at N times the live requests."""
    bucket = Bucket(replace, VerifyExtendBuffers.allocate(dims, 4, 40, CPU), 4)
    small = VerifyExtendBuffers.allocate(dims, 3, 40, CPU)
    assert small.hidden_states is not None
    small.hidden_states += 1
    live = VerifyExtendInput(
        **{item.name: getattr(small, item.name) for item in fields(VerifyExtendInput)}
    )
    out = bucket(live, 3)
    assert out.hidden_states is not None
    assert out.hidden_states.shape == (3 * 8, 3 * 64)
    assert (out.hidden_states == 1).all()


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


MIXED = [
    SamplingParams(max_tokens=9, temperature=0.9, seed=1, ignore_eos=True),
    SamplingParams(max_tokens=6, temperature=0.0, ignore_eos=True),
    SamplingParams(max_tokens=12, temperature=0.7, top_k=5, seed=2, ignore_eos=True),
    SamplingParams(max_tokens=15, temperature=1.1, top_p=0.8, min_p=0.02, seed=3, ignore_eos=True),
]


@pytest.mark.parametrize("shape", ["chain of 4", "tree"])
def test_drawn_candidates_replayed_are_those_of_the_eager_loop(shape: str) -> None:
    """Greedy, warm and truncating requests side by side, and each kind alone at the end."""
    outputs = []
    for graphs in (False, True):
        llm = tiny("eagle3", graphs=graphs, drafting="drawn", max_requests=4, **SHAPES[shape])
        together = llm.generate(["a", "hello", "zzz", "hello world"], MIXED)
        alone = [llm.generate("what", params)[0] for params in MIXED]
        outputs.append([output.token_ids for output in (*together, *alone)])
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(("top_k", "replayed"), [(0, "forward"), (5, "truncating")])
def test_one_replay_holds_every_step_of_a_drawn_loop(top_k: int, replayed: str) -> None:
    llm = tiny("eagle3", graphs=True, drafting="drawn", **SHAPES["tree"])
    grow = llm.engine.scheduler.step.proposer.grow
    assert isinstance(grow, DrawnLoop)
    names = Names()
    with watched(llm.engine.scheduler, names):
        params = SamplingParams(max_tokens=8, temperature=0.8, top_k=top_k, ignore_eos=True)
        llm.generate("hello", params)
    assert names.begun["draft loop replay"] == names.begun["draft decode"] > 0
    assert names.begun["draft loop forward"] == 0
    forwards = {"forward": grow.forward, "truncating": grow.truncating}
    ran = {name for name, one in forwards.items() if one.buckets[0].outputs is not None}
    assert ran == {replayed}


def test_the_law_of_a_replay_outlives_the_next_one(dims: Dims) -> None:
    graphs = Replayed(dims=dims, max_requests=2, max_seq_len=40, device=CPU)
    size, vocab = dims["num_draft_tokens"], dims["draft_vocab"]

    def forward(batch: DrawnRoots) -> DraftTree:
        nothing = torch.zeros(len(batch.roots.seq_lens), size, dtype=torch.int64)
        law = TreeLaw.assemble(batch.law, [], nothing)
        return DraftTree(
            draft_tokens=nothing,
            tree_mask=torch.zeros(*nothing.shape, size, dtype=torch.bool),
            positions=nothing,
            next_child=nothing,
            next_sibling=nothing,
            draft_probs=law,
            slots=nothing,
        )

    runner = graphs.wrap(forward, DrawnRootsBuffers)
    trees = []
    for seed in (1, 2):
        controls = BatchControls.of([MIXED[0]], [seed], device=CPU)
        logits = torch.randn(1, vocab, generator=torch.Generator().manual_seed(seed))
        _, law = draw_root(logits, controls, torch.zeros(1, dims["topk"]).double())
        roots = DraftRootsBuffers.allocate(dims, 1, 40, CPU)
        live = DraftRoots(**{item.name: getattr(roots, item.name) for item in fields(DraftRoots)})
        trees.append((runner(DrawnRoots(roots=live, law=law, controls=controls)), law))
    for tree, law in trees:
        assert tree.draft_probs is not None
        assert torch.equal(tree.draft_probs.probs, law.probs[:, None].expand(-1, size, -1))
