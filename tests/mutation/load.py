"""The load run: seeded tiny engines of every algorithm, a few requests, one abort, one idle turn.

No two sizes of a batch, a tree or a model have one number, so that a wrong size is a wrong number.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from engine.llm import LLM
from engine.sampling import SamplingParams
from shapecheck import ShapeContractError

_TREE: Mapping[str, object] = {"topk": 2, "num_steps": 4, "num_draft_tokens": 7}
_CHAIN: Mapping[str, object] = {"num_steps": 3}
_GREEDY = SamplingParams(max_tokens=10, temperature=0.0, ignore_eos=True)
_DRAWN = SamplingParams(max_tokens=10, temperature=0.9, top_p=0.9, ignore_eos=True)
_PENALTIES = SamplingParams(max_tokens=10, temperature=0.0, ignore_eos=True, repetition_penalty=1.3)
_PROMPTS = ("abc abc abc", "hello", "one two", "a longer prompt than others", "xyz xyz", "sixth")

Outcome = dict[str, str]


def _engines() -> Mapping[str, tuple[Mapping[str, object], SamplingParams]]:
    return {
        "none": ({"algorithm": "none"}, _GREEDY),
        "ngram": ({"algorithm": "ngram", **_CHAIN}, _PENALTIES),
        "standalone": ({"algorithm": "standalone", "graphs": True, **_CHAIN}, _GREEDY),
        "standalone tree": ({"algorithm": "standalone", "drafting": "drawn", **_TREE}, _DRAWN),
        "eagle": ({"algorithm": "eagle", **_TREE}, _GREEDY),
        "eagle3": ({"algorithm": "eagle3", "graphs": True, **_TREE}, _GREEDY),
        "eagle3 drawn": ({"algorithm": "eagle3", "drafting": "drawn", **_TREE}, _DRAWN),
        "eagle3 chain": ({"algorithm": "eagle3", "drafting": "drawn", **_CHAIN}, _DRAWN),
    }


def outcomes(*, whole: bool = False) -> Outcome:
    """What became of each engine: "done", the code of a contract's error, or another error.

    Without `whole` the first contract's error ends the run: it is seen.
    """
    found: Outcome = {}
    for name, (settings, params) in _engines().items():
        found[name] = _outcome(partial(_run, settings, params))
        if found[name].startswith("SHP") and not whole:
            break
    return found


def signatures() -> Iterator[tuple[str, str]]:
    """By engine, the shapes and dtypes of all operations of one turn, as one hash.

    No value of a tensor decides a shape there: another hash is another size, rank or dtype.
    """
    for name, (settings, params) in _engines().items():
        seen = _Shapes()
        said = _outcome(partial(seen.over, settings, params))
        text = "\n".join([said, *sorted(f"{count}x {op}" for op, count in seen.counts.items())])
        yield name, hashlib.sha256(text.encode()).hexdigest()


def _outcome(run: Callable[[], None]) -> str:
    try:
        run()
    except ShapeContractError as error:
        return error.diagnostic.code
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]}"
    return "done"


def _engine(settings: Mapping[str, object]) -> LLM:
    return LLM("tiny", max_requests=8, max_context=96, num_slots=900, **settings)  # type: ignore[arg-type]


def _start(llm: LLM, params: SamplingParams) -> list[Any]:
    encode = llm.tokenizer.encode
    return [llm.engine.add(encode(text), params) for text in _PROMPTS]


def _run(settings: Mapping[str, object], params: SamplingParams) -> None:
    """Six requests at once, one leaves, another comes late, and a rank stands idle."""
    llm = _engine(settings)
    requests = _start(llm, params)
    llm.engine.turn()
    llm.engine.scheduler.idle_turn()
    llm.engine.scheduler.abort(requests[1])
    llm.engine.turn()
    llm.engine.add(llm.tokenizer.encode("late"), params)
    llm.engine.run()


class _Shapes(TorchDispatchMode):
    """Counts operations by name, shapes and dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def over(self, settings: Mapping[str, object], params: SamplingParams) -> None:
        """The prompts are read, one iteration is made, a request leaves, a rank stands idle."""
        with self:
            llm = _engine(settings)
            requests = _start(llm, params)
            llm.engine.turn()
            llm.engine.scheduler.abort(requests[1])
            llm.engine.scheduler.idle_turn()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        result = function(*args, **(kwargs or {}))
        self.counts[f"{function} {_described(args)} -> {_described(result)}"] += 1
        return result


def _described(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{list(value.shape)}".removeprefix("torch.")
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(_described(one) for one in value) + ")"
    return ""
