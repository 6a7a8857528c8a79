"""Penalties along tree paths, against the history of each path taken alone."""

import torch

from engine.sampling import BatchControls, SamplingParams, TokenCounts, penalise, token_logprobs
from engine.tree import build_structure

CPU = torch.device("cpu")


def plain(logits, prompt, output, params):
    """One row's logits after its whole history."""
    result = []
    for token, logit in enumerate(logits):
        if token in prompt or token in output:
            rate = params.repetition_penalty
            logit = logit / rate if logit > 0 else logit * rate
        times = output.count(token)
        logit -= params.presence_penalty * (times > 0) + params.frequency_penalty * times
        result.append(logit)
    return result


def test_each_node_sees_its_own_path_and_no_other():
    generator = torch.Generator().manual_seed(0)
    params = [
        SamplingParams(repetition_penalty=1.3, presence_penalty=0.4, frequency_penalty=0.7),
        SamplingParams(),
        SamplingParams(frequency_penalty=-0.5),
    ]
    controls = BatchControls.of(params, range(3), device=CPU)
    prompts, outputs = [[1, 1, 4], [2], []], [[5, 5, 0], [3], [3, 3]]
    counts = TokenCounts.of(prompts, outputs, target_vocab=7, device=CPU)
    index = torch.tensor([[0, 1, 2, 4]] * 3)
    at = torch.zeros(3, dtype=torch.int64)
    structure = build_structure(torch.tensor([[-1, 0, 1]] * 3), index, at, topk=2)
    tokens = torch.tensor([[6, 5, 2, 5, 3]] * 3)
    logits = torch.randn(3, 5, 7, generator=generator)
    got = penalise(logits, tokens, structure.tree_mask, counts, controls)
    for b in range(3):
        for node in range(5):
            path = [int(tokens[b, i]) for i in range(5) if structure.tree_mask[b, node, i]]
            wanted = plain(logits[b, node].tolist(), prompts[b], outputs[b] + path, params[b])
            assert torch.allclose(got[b, node], torch.tensor(wanted), atol=1e-6)
    # A request without penalties keeps its logits to the bit.
    assert torch.equal(got[1], logits[1])


def test_logprobs_are_of_the_unfiltered_law():
    logits = torch.tensor([[[0.0, 1.0, 3.0]]])
    logprobs = token_logprobs(logits, torch.tensor([[1]]), count=2)
    wanted = logits.log_softmax(dim=2)[0, 0]
    assert torch.equal(logprobs.chosen, wanted[1].view(1, 1))
    assert logprobs.top_ids.tolist() == [[[2, 1]]]
    assert torch.equal(logprobs.top_values, wanted[[2, 1]].view(1, 1, 2))
    assert token_logprobs(logits, torch.tensor([[1]]), count=0).top_ids.shape == (1, 1, 0)
    assert token_logprobs(logits, torch.tensor([[1]]), count=9).top_ids.shape == (1, 1, 3)
