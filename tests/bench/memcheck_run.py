"""memcheck_run: a few tokens of every proposer, short enough for a memory checker.

compute-sanitizer --tool memcheck --error-exitcode 9 python -m tests.bench.memcheck_run
PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool memcheck --error-exitcode 9 \\
    python -m tests.bench.memcheck_run --no-graphs

With graphs, as the engine runs. Without them torch's caching can be turned off, so that every
tensor is an allocation of its own and an access just behind it is seen; a graph's capture needs
the cache. The tokens are compared with those of plain decoding on the same device.
"""

from __future__ import annotations

import argparse

import torch

from engine.llm import LLM
from engine.sampling import SamplingParams

PROMPTS = ["a", "hello world"]
PARAMS = SamplingParams(max_tokens=5, temperature=0.0, ignore_eos=True)
# Chains and trees, chosen and drawn candidates: every kernel of an iteration runs.
RUNS: dict[str, dict[str, object]] = {
    "ngram": {"algorithm": "ngram", "num_steps": 3},
    "standalone": {"algorithm": "standalone", "num_steps": 3},
    "eagle3, tree": {
        "algorithm": "eagle3",
        "topk": 2,
        "num_steps": 2,
        "num_draft_tokens": 5,
    },
    "eagle3, drawn": {"algorithm": "eagle3", "num_steps": 2, "drafting": "drawn"},
}


def tokens(device: str, graphs: bool, **settings: object) -> list[tuple[int, ...]]:
    """What an engine of these settings says; two requests, so that padding rows exist."""
    cuda = device.startswith("cuda")
    llm = LLM(
        "tiny",
        device=device,
        # On CUDA the kernels, which are for 16 bits; then no rounding may depend on the batch.
        dtype="bfloat16" if cuda else "float32",
        batch_invariant=cuda,
        graphs=graphs,
        max_context=64,
        max_requests=3,
        prefill_chunk=8,
        **settings,
    )
    outputs = llm.generate(PROMPTS, PARAMS)
    if cuda:
        torch.cuda.synchronize()
    return [output.token_ids for output in outputs]


def main() -> int:
    """0 when every proposer says what plain decoding says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--graphs", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    plain = tokens(options.device, options.graphs, algorithm="none")
    same = {
        name: tokens(options.device, options.graphs, **settings) == plain
        for name, settings in RUNS.items()
    }
    for name, equal in same.items():
        print(f"{name:14} {'the same tokens' if equal else 'OTHER tokens'}")
    return int(not all(same.values()))


if __name__ == "__main__":
    raise SystemExit(main())
