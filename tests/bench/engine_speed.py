"""Tokens per second on the CPU: transformers' generate, the engine plain, the engine with n-grams.

    python tests/bench/engine_speed.py [--tokens 64] [--rounds 3] [--threads 2]

The three take turns in one process on the same fp32 weights of SmolLM2-135M-Instruct, prefill
included. The best round of each counts: what else the machine does only ever adds time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
import transformers

from engine.bench.compare import BENCH_PROMPT
from engine.config import EngineConfig
from engine.llm import LLM
from engine.models.llama import CausalLM
from engine.models.pair import load_pair
from engine.sampling import SamplingParams


def as_transformers(model: CausalLM) -> transformers.LlamaForCausalLM:
    """The same model with the same weights."""
    config = model.config
    theirs = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=config.vocab,
            hidden_size=config.hidden,
            intermediate_size=config.ffn,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            rms_norm_eps=config.norm_eps,
            max_position_embeddings=config.max_positions,
            rope_parameters={"rope_type": "default", "rope_theta": config.rope.theta},
            tie_word_embeddings=config.tied,
        )
    ).eval()
    weights = {slot.name: slot.destination for slot in model.weights()}
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    theirs.load_state_dict(weights)
    return theirs


def main() -> None:
    """Print the best rounds and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    settings = {"max_context": 1024, "prefix_cache": False}
    config = EngineConfig.of(algorithm="none", **settings)
    pair = load_pair(config)
    ids = pair.tokenizer.encode(BENCH_PROMPT)
    theirs = as_transformers(pair.target)
    params = SamplingParams(max_tokens=options.tokens, temperature=0.0, ignore_eos=True)
    plain = LLM.of(config, pair)
    ngram = LLM.of(EngineConfig.of(algorithm="ngram", **settings), pair)

    @torch.inference_mode()
    def reference() -> list[int]:
        out = theirs.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.int64),
            do_sample=False,
            max_new_tokens=options.tokens,
            min_new_tokens=options.tokens,
            pad_token_id=0,
        )
        return out[0, len(ids) :].tolist()

    runs: dict[str, Callable[[], list[int]]] = {
        "transformers": reference,
        "engine, plain": lambda: list(plain.generate([ids], params)[0].token_ids),
        "engine, ngram": lambda: list(ngram.generate([ids], params)[0].token_ids),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    outputs = {name: run() for name, run in runs.items()}  # also warms up
    for _ in range(options.rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    best = {name: options.tokens / min(each) for name, each in seconds.items()}
    for name, speed in best.items():
        same = "same tokens" if outputs[name] == outputs["transformers"] else "OTHER tokens"
        ratio = speed / best["transformers"]
        print(f"{name:14} {speed:6.1f} tok/s  {ratio:.2f} x transformers  {same}")
    print(f"n-gram over plain: {best['engine, ngram'] / best['engine, plain']:.2f}")
    print(f"accept length with n-grams: {ngram.metrics().accept_length:.2f}")


if __name__ == "__main__":
    main()
