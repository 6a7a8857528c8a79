"""The load run: seeded tiny engines of every algorithm, requests of many kinds, idle turns, merges.

No two sizes of a tree or of the two models have one number, so that a wrong size is a wrong number.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import engine.models.pair
from engine.config import EngineConfig
from engine.llm import LLM
from engine.models.config import ModelConfig
from engine.models.eagle_config import EagleConfig, Version, eagle_config
from engine.models.pair import ModelPair, load_pair
from engine.sampling import SamplingParams
from shapecheck import ShapeContractError
from tests.mutation.crossings import Crossings, overheard

_VOCAB = 258
_TREE: Mapping[str, object] = {"topk": 2, "num_steps": 4, "num_draft_tokens": 8}
_CHAIN: Mapping[str, object] = {"num_steps": 3}
# Whatever token is drawn has stood in this prompt before: an n-gram always matches.
_EVERY_TOKEN = tuple(range(_VOCAB))
_SHARED = "a prefix that two prompts share, "
_PROMPTS: tuple[str | Sequence[int], ...] = (
    _EVERY_TOKEN[:70],
    "hello",
    _SHARED + "one",
    _SHARED + "another",
    "xyz xyz",
    "sixth",
)
_LATE = _SHARED + "late"

# Lists of a host become tensors here, and histories are counted.
_HOST_LISTS = (torch.ops.aten.lift_fresh, torch.ops.aten.detach_, torch.ops.aten.bincount)

Outcome = dict[str, str]
Engines = Mapping[str, tuple[Mapping[str, object], Sequence[SamplingParams]]]


def _params(**values: Any) -> list[SamplingParams]:
    """Requests that end one after the other, each later than its first iteration can."""
    return [SamplingParams(max_tokens=8 + n, ignore_eos=True, **values) for n in range(4)]


_GREEDY = _params(temperature=0.0)
_PENALISED = _params(temperature=0.0, repetition_penalty=1.3)
_DRAWN = _params(temperature=0.9, top_p=0.9, top_k=40, min_p=0.01)
# Greedy, drawn and penalised side by side.
_MIXED = [_GREEDY[0], _DRAWN[1], _PENALISED[2], _DRAWN[3]]


def _engines() -> Engines:
    # Short chunks: a prompt is read over several turns, beside others that run.
    chunks = {"prefill_chunk": 48}
    return {
        "none": ({"algorithm": "none", **chunks}, _MIXED),
        "ngram": ({"algorithm": "ngram", "ngram_min": 1, **_CHAIN}, _PENALISED),
        "standalone": ({"algorithm": "standalone", **_CHAIN}, _GREEDY),
        "standalone chain": (
            {"algorithm": "standalone", "drafting": "drawn", "graphs": True, **_CHAIN},
            _DRAWN,
        ),
        "standalone tree": ({"algorithm": "standalone", "drafting": "drawn", **_TREE}, _MIXED),
        "eagle": ({"algorithm": "eagle", **chunks, **_TREE}, _MIXED),
        "eagle3": ({"algorithm": "eagle3", "graphs": True, **_TREE}, _GREEDY),
        "eagle3 drawn": ({"algorithm": "eagle3", "drafting": "drawn", **_TREE}, _DRAWN),
        "eagle3 chain": ({"algorithm": "eagle3", "drafting": "drawn", **_CHAIN}, _DRAWN),
    }


def run(name: str) -> None:
    """One of the engines, from its start to its last request."""
    settings, params = _engines()[name]
    _run(settings, params, nullcontext())


def outcomes() -> Outcome:
    """What became of each engine: "done", the code of a contract's error, or another error.

    The first contract's error ends the run: the mutant is seen.
    """
    found: Outcome = {}
    for name in _engines():
        found[name] = _outcome(partial(run, name))
        if found[name].startswith("SHP"):
            break
    return found


def signatures() -> Iterator[tuple[str, str, dict[str, int], str]]:
    """By engine, how its run ends, the operations of its first turn, and what crossed in all.

    The operations are counted by their shapes and dtypes: no value of a tensor decides a shape
    there, so a new one is another size, rank or dtype. What
    crossed contracts is one hash.
    """
    for name, (settings, params) in _engines().items():
        shapes, crossings = _Shapes(), Crossings()
        with overheard(crossings):
            said = _outcome(partial(_run, settings, params, shapes))
        yield name, said, shapes.counts(), crossings.digest()


def _outcome(run: Callable[[], None]) -> str:
    try:
        run()
    except ShapeContractError as error:
        return f"{error.diagnostic.code} {error.diagnostic.message[:120]}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]}"
    return "done"


def _run(
    settings: Mapping[str, object],
    params: Sequence[SamplingParams],
    watched: AbstractContextManager[object],
) -> None:
    """Six requests at once, an idle rank, one leaves, another comes late and shares a prefix."""
    with watched:
        llm = _engine(settings)
        encoded = [_encoded(llm, prompt) for prompt in _PROMPTS]
        add = llm.engine.add
        requests = [add(ids, params[n % len(params)]) for n, ids in enumerate(encoded)]
        llm.engine.turn()
        llm.engine.scheduler.idle_turn()
        llm.engine.scheduler.abort(requests[1])
    llm.engine.turn()
    add(_encoded(llm, _LATE), params[0])
    if settings["algorithm"] == "ngram":
        add(_EVERY_TOKEN, params[1])
    llm.engine.run()


def _encoded(llm: LLM, prompt: str | Sequence[int]) -> Sequence[int]:
    return llm.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt


def _engine(settings: Mapping[str, object]) -> LLM:
    config = EngineConfig.of(
        target="tiny", max_requests=7, max_context=320, num_slots=1100, **settings
    )
    with patch.multiple(
        engine.models.pair, tiny_config=_model_config, tiny_eagle_config=_head_config
    ):
        pair: ModelPair = load_pair(config)
    return LLM.of(config, pair)


def _model_config(*, hidden: int, layers: int = 1) -> ModelConfig:
    """Two layers of hidden 84 with 6 heads for the target, one of 54 with 9 for a draft."""
    del layers
    target = hidden == 64
    sizes = _sizes(84, 6, 2) if target else _sizes(54, 9, 3)
    raw = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2 if target else 1, **sizes}
    return ModelConfig.from_hf(raw, source="<target>" if target else "<draft>")


def _head_config(target: ModelConfig, *, version: Version) -> EagleConfig:
    """An EAGLE-3 head has sizes of its own; an EAGLE-1 head shares the target's hidden size."""
    raw: dict[str, object] = {
        "architectures": [f"LlamaForCausalLMEagle{'3' if version == 'eagle3' else ''}"],
        "num_hidden_layers": 1,
        "target_hidden_size": target.hidden,
        **(_sizes(54, 9, 3) if version == "eagle3" else _sizes(84, 3, 1)),
    }
    if version == "eagle3":
        raw |= {"draft_vocab_size": 131, "eagle_aux_hidden_state_layer_ids": [0, 1, 1]}
    return eagle_config(raw, target, version=version, source="<head>")


def _sizes(hidden: int, heads: int, kv_heads: int) -> dict[str, object]:
    return {
        "vocab_size": _VOCAB,
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden + 4,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": 512,
        "eos_token_id": 256,
    }


class _Shapes(TorchDispatchMode):
    """Counts operations by name, shapes and dtypes.

    An elementwise one that changes neither is left out: one more or less of them is another value.
    So is what makes a tensor of a host's list of tokens, whose length depends on values.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts: Counter[object] = Counter()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        result = function(*args, **(kwargs or {}))
        given, made = _described(args), _described(result)
        elementwise = torch.Tag.pointwise in function.tags and _keeps(given, made)
        if not elementwise and function.overloadpacket not in _HOST_LISTS:
            self._counts[function, given, made] += 1
        return result

    def counts(self) -> dict[str, int]:
        """How often each operation was, by a hash of its name, shapes and dtypes."""
        counts: Counter[str] = Counter()
        for one, count in self._counts.items():
            counts[hashlib.sha256(str(one).encode()).hexdigest()[:12]] += count
        return dict(counts)


def _keeps(given: object, made: object) -> bool:
    """Whether every operand has the shape and dtype of the one result, numbers left aside."""
    assert isinstance(given, tuple), "positional arguments"
    return all(one is None or one == made for one in given)


def _described(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape)
    if isinstance(value, (tuple, list)):
        return tuple(map(_described, value))
    return None
