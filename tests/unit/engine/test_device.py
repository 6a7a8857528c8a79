"""Draft, tree and acceptance never ask the device for a value, and agree on CPU and CUDA."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from engine.sampling import (
    BatchControls,
    HotVocab,
    SamplingParams,
    Stream,
    TokenCounts,
    TreeLaw,
    accept_chain,
    accept_tree,
    choose_children,
    coins,
    draw,
    draw_root,
    draw_step,
    penalise,
    sampling_law,
    token_logprobs,
)
from engine.tree import (
    accept_greedy,
    build_structure,
    first_level,
    law_columns,
    next_level,
    rank_scores,
    select_nodes,
)
from shapecheck.config import Level, settings

ROWS, VOCAB, HOT = 3, 11, 7
PARAMS = [
    SamplingParams(temperature=0.8, top_p=0.9, repetition_penalty=1.2),
    SamplingParams(temperature=0.0),
    SamplingParams(top_k=4, frequency_penalty=0.3),
]


def iteration(
    topk: int, *, draws: bool, device: torch.device
) -> tuple[Callable[..., list[Tensor]], list[Tensor]]:
    """One speculative iteration on `device`, and inputs for it on the CPU."""
    controls = BatchControls.of(PARAMS, [3, 4, 2**40], device=device)
    ids = torch.arange(HOT, device=device)
    # Both are built by hand: their makers read values, as they may between iterations.
    cold = torch.full((VOCAB,), -1, device=device).scatter(0, ids + ids // 2, ids)
    hot = HotVocab(hot=ids + ids // 2, cold=cold, is_whole=False)
    in_output = (torch.arange(VOCAB, device=device) % 3).int().repeat(ROWS, 1)
    counts = TokenCounts(in_prompt=in_output == 1, in_output=in_output)
    width = 3 if topk == 1 else 2 + 2 * topk

    def children(logits: Tensor, lanes_RK: Tensor, sampler: Callable[..., tuple]) -> tuple:
        if not draws:
            return (*choose_children(logits, topk=topk), None)
        tokens, law = sampler(logits, controls, lanes_RK)
        return rank_scores(len(logits), topk, device=device), tokens, law

    def step(draft: Tensor, deeper: Tensor, target: Tensor, seq_lens: Tensor) -> list[Tensor]:
        lanes = coins(controls.seeds, seq_lens, Stream.DRAFT, lanes=topk + topk * topk)
        scores, tokens, root = children(draft, lanes[:, :topk], draw_root)
        level, frontier = first_level(scores, hot.target_ids(tokens))
        scores, tokens, below = children(deeper, lanes[:, topk:].reshape(-1, topk), draw_step)
        last, _ = next_level(frontier, scores, hot.target_ids(tokens), step=1)
        selected = select_nodes([level, last], seq_lens % VOCAB, num_draft_tokens=width)
        tree = build_structure(selected.parent_list, selected.top_scores_index, seq_lens, topk=topk)
        logits = penalise(target, selected.draft_tokens, tree.tree_mask, counts, controls)
        target_probs = sampling_law(logits, controls)
        inputs = (target_probs, selected.draft_tokens)
        accept = coins(controls.seeds, seq_lens, Stream.ACCEPT, lanes=width)
        final = coins(controls.seeds, seq_lens, Stream.FINAL, lanes=1).squeeze(1)
        if not draws:
            drawn = draw(target_probs.flatten(0, 1), accept.flatten()).view(ROWS, width)
            accepted = accept_greedy(selected.draft_tokens, drawn, tree.tree_mask, accept_width=3)
        else:
            columns = law_columns(selected.parent_list, selected.top_scores_index)
            law = TreeLaw.assemble(root, [below], columns)
            links = (tree.next_child, tree.next_sibling)
            accepted = (
                accept_chain(*inputs, law, hot, accept, final, accept_width=3)
                if topk == 1
                else accept_tree(*inputs, law, hot, *links, accept, final, accept_width=3)
            )
        logprobs = token_logprobs(target, accepted.predict, count=2)
        return [
            accepted.predict,
            accepted.accept_index,
            accepted.accept_lens,
            logprobs.top_ids,
        ]

    generator = torch.Generator().manual_seed(topk)
    return step, [
        torch.randn(ROWS, HOT, generator=generator),
        torch.randn(ROWS * topk, HOT, generator=generator),
        torch.randn(ROWS, width, VOCAB, generator=generator),
        torch.tensor([5, 9, 30]),
    ]


KINDS = [(1, True), (2, True), (1, False), (3, False)]
names = pytest.mark.parametrize(("topk", "draws"), KINDS)


@names
def test_no_value_is_read_on_the_host(topk, draws):
    """Tensors on the meta device have no values: reading one raises."""
    step, inputs = iteration(topk, draws=draws, device=torch.device("meta"))
    outputs = step(*(tensor.to("meta") for tensor in inputs))
    assert outputs[1].shape == (ROWS, 3)
    assert all(output.is_meta for output in outputs)


def test_reading_a_value_would_be_seen():
    with pytest.raises(RuntimeError, match="meta"):
        bool(torch.ones(2, device="meta").any())


@pytest.mark.gpu
@pytest.mark.skipif(settings().level is Level.FULL, reason="full reads values of its own")
@names
def test_cuda_agrees_with_the_cpu_and_replays_in_a_graph(topk, draws):
    step, inputs = iteration(topk, draws=draws, device=torch.device("cpu"))
    on_cuda, _ = iteration(topk, draws=draws, device=torch.device("cuda"))
    static = [tensor.cuda() for tensor in inputs]
    torch.cuda.set_sync_debug_mode("error")
    try:
        eager = on_cuda(*static)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for wanted, got in zip(step(*inputs), eager, strict=True):
        assert torch.equal(got.cpu(), wanted)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = on_cuda(*static)
    for shift in range(1, 4):
        moved = [*(tensor.roll(shift, dims=0) for tensor in inputs[:3]), inputs[3] + shift]
        for buffer, tensor in zip(static, moved, strict=True):
            buffer.copy_(tensor)
        graph.replay()
        for wanted, got in zip(step(*moved), captured, strict=True):
            assert torch.equal(got.cpu(), wanted)
