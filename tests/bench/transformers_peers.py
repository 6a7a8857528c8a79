"""transformers_peers: `generate` on the engine's own weights, plain and assisted at its best.

V vocabulary
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from engine.models.llama import CausalLM

# Small enough that the embedding decides what comes next, large enough to be ordinary numbers.
_FAINT = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Decoding alone, the prompt left out; `per_forward` is tokens by forwards of the target."""

    tokens_per_second: float
    per_forward: float


@torch.inference_mode()
def as_transformers(model: CausalLM) -> LlamaForCausalLM:
    """The same Llama over the same weights, nothing copied."""
    config = model.config
    rope = {
        name: value
        for name, value in config.rope.model_dump(by_alias=True, exclude_none=True).items()
        if name in ("rope_type", "rope_theta", "factor", "low_freq_factor", "high_freq_factor")
        or name == "original_max_position_embeddings"
    }
    theirs = LlamaConfig(
        vocab_size=config.vocab,
        hidden_size=config.hidden,
        intermediate_size=config.ffn,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.head_dim,
        rms_norm_eps=config.norm_eps,
        max_position_embeddings=config.max_positions,
        rope_parameters=rope,
        # The head is a parameter of its own, even where it is the same matrix.
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        dtype=model.dtype,
    )
    with torch.device("meta"):
        other = LlamaForCausalLM(theirs).requires_grad_(False).eval()
    weights = {slot.name: slot.destination for slot in model.weights()}
    weights.setdefault("lm_head.weight", model.head.weight_VH.data)
    other.load_state_dict(weights, assign=True)
    with torch.device(model.device):
        other.model.rotary_emb = LlamaRotaryEmbedding(config=theirs)
    other.generation_config.pad_token_id = 0
    return other


@torch.inference_mode()
def continue_alike(*models: LlamaForCausalLM, seed: int = 5) -> Tensor:
    """All of these now follow token t with the same token, which is returned for every t: (V,).

    The best case of assisted generation that no published pair reaches: every proposal of a small
    assistant is accepted. All layers are computed as before, only their share of the residual
    stream is faint, and the head looks for the embedding of the token before.
    """
    device = models[0].device
    generator = torch.Generator(device).manual_seed(seed)
    after_V = torch.randperm(models[0].config.vocab_size, generator=generator, device=device)
    for model in models:
        embedding_VH = model.model.embed_tokens.weight
        head_VH = torch.empty_like(embedding_VH)
        head_VH[after_V] = embedding_VH
        model.lm_head.weight = nn.Parameter(head_VH, requires_grad=False)
        model.model.norm.weight = nn.Parameter(
            torch.ones_like(model.model.norm.weight), requires_grad=False
        )
        for layer in model.model.layers:
            for linear in (layer.self_attn.o_proj, layer.mlp.down_proj):
                linear.weight = nn.Parameter(linear.weight * _FAINT, requires_grad=False)
    return after_V


def speed(
    model: LlamaForCausalLM,
    prompt: list[int],
    *,
    tokens: int,
    assistant: LlamaForCausalLM | None = None,
    proposed: int = 4,
) -> Speed:
    """Greedy tokens per second, from the difference between a short and a longer run."""
    if assistant is not None:
        settings = assistant.generation_config
        settings.num_assistant_tokens = proposed
        settings.num_assistant_tokens_schedule = "constant"
        settings.assistant_confidence_threshold = 0.0
    forwards = 0

    def count(*_: object) -> None:
        nonlocal forwards
        forwards += 1

    hook = model.register_forward_pre_hook(count)
    short = max(tokens // 4, 1)
    try:
        generate(model, prompt, tokens=short, assistant=assistant)
        first = _seconds(lambda: generate(model, prompt, tokens=short, assistant=assistant))
        forwards = 0
        second = _seconds(lambda: generate(model, prompt, tokens=tokens, assistant=assistant))
    finally:
        hook.remove()
    return Speed(
        tokens_per_second=(tokens - short) / (second - first), per_forward=tokens / forwards
    )


@torch.inference_mode()
def generate(
    model: LlamaForCausalLM,
    prompt: list[int],
    *,
    tokens: int,
    assistant: LlamaForCausalLM | None = None,
) -> list[int]:
    """What greedy `generate` continues the prompt with."""
    ids = torch.tensor([prompt], device=model.device)
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=tokens,
        assistant_model=assistant,
    )
    return out[0, len(prompt) :].tolist()


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
