"""transformers under trace: real models and a real assisted generation, nothing of ours."""

from __future__ import annotations

import pytest
import torch

from shapecheck.diagnostics import Severity
from shapecheck.symbolic import trace

transformers = pytest.importorskip("transformers")

REQUIREMENT = "target_vocab == draft_vocab"


def config():
    """A tiny Llama; both models get the same numbers."""
    return transformers.LlamaConfig(
        hidden_size=128,
        intermediate_size=344,
        vocab_size=1000,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=16,
        num_hidden_layers=2,
        max_position_embeddings=256,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )


def model(t, owner: str):
    return transformers.LlamaForCausalLM(t.config(config(), owner)).to(t.dtype(owner)).eval()


def test_llama_runs_on_symbols():
    with trace(within=["transformers"]) as t, torch.no_grad():
        out = model(t, "target")(input_ids=t.tensor("bs tokens", torch.int64, ids="target"))
        assert t.shape(out.logits) == "[bs, tokens, target_vocab]"
    report = t.report()
    assert report.findings == ()
    assert report.checked_operations > 50


def test_a_draft_fed_with_target_hidden_states_is_found():
    with trace(within=["transformers"]) as t, torch.no_grad():
        hidden = t.tensor("bs tokens target_hidden", "draft")
        model(t, "draft")(inputs_embeds=hidden)
    report = t.report()
    (finding,) = [item for item in report.findings if item.severity is Severity.ERROR]
    assert finding.code == "SHP301"
    assert {finding.dims.expected, finding.dims.found} == {"target_hidden", "draft_hidden"}
    assert finding.primary.path == "transformers/models/llama/modeling_llama.py"
    assert finding.notes[0].label == "called from"
    assert finding.notes[0].span.path.endswith("test_transformers.py")


@pytest.mark.parametrize("allowed", [False, True])
def test_assisted_generation_requires_one_vocabulary(allowed):
    with trace(within=["transformers"], hints={"bs": 1}) as t, torch.no_grad():
        if allowed:
            t.allow(REQUIREMENT, reason="assisted generation requires it")
        target, draft = model(t, "target"), model(t, "draft")
        prompt = t.tensor("bs tokens", torch.int64, ids="target")
        out = target.generate(
            prompt,
            assistant_model=draft,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=3,
            do_sample=False,
        )
        assert out.shape[0] == 1
    report = t.report()
    assert report.stopped is None
    if allowed:
        assert report.findings == ()
    else:
        said = {(item.code, item.dims.expected, item.dims.found) for item in report.findings}
        assert ("SHP301", "target_vocab", "draft_vocab") in said
        assert ("SHP305", "draft_vocab", "target_vocab") in said
