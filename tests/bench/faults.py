"""faults: the known traps of a draft/verify engine, injected into a running one.

Each is a function that builds a tiny engine, spoils one thing in it, and drives it until a
contract speaks. Tests and the campaign share them. `strict` sees a wrong size, rank or dtype where
it is made; what has the right shape and the wrong values is for `full`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from engine.carriers import VerifyRows
from engine.config import EngineConfig
from engine.engine import Engine
from engine.graphs.buffers import VerifyExtendBuffers
from engine.llm import LLM
from engine.models.pair import tiny_pair
from engine.observe.watch import watched
from engine.phases import draft_loop
from engine.sampling import SamplingParams
from shapecheck.config import Level
from tests.bench.patches import Patches

GREEDY = SamplingParams(max_tokens=12, temperature=0.0, ignore_eos=True)
# Graphs of one forward, for one request and for two: a fault of building is in one of them.
BUCKETS = 2
TREE: Mapping[str, object] = {"topk": 3, "num_steps": 3, "num_draft_tokens": 8}


class Injection:
    """One run of a fault; `healthy` calls of the spoiled place go well before it.

    `forwards_after` counts the model forwards and graph replays that began after the fault was
    made: 0 says that no kernel could read what is wrong.
    """

    def __init__(self, patches: Patches, *, device: str, graphs: bool, healthy: int = 0) -> None:
        self.patches = patches
        self.healthy = healthy
        self.settings = {
            "device": device,
            # On CUDA the kernels, which are for 16 bits.
            "dtype": "bfloat16" if device.startswith("cuda") else "float32",
            "graphs": graphs,
            "prefill_chunk": 4,
            "max_requests": BUCKETS,
        }
        self.made = 0
        self.forwards_after = 0
        self.prompts = ["hello world", "the quick brown fox"]

    def tiny(self, algorithm: str = "eagle3", **settings: object) -> LLM:
        """A tiny engine, a tree unless told otherwise."""
        chosen = {**TREE, **self.settings, **settings}
        config = EngineConfig.of(target="tiny", algorithm=algorithm, **chosen)
        pair = tiny_pair(config)
        for model in (pair.target, pair.draft):
            if model is not None:
                model.register_forward_pre_hook(self._model_forward)
        return LLM.of(config, pair)

    def change(self, owner: object, name: str, bend: Callable[[Any], Any]) -> None:
        """What `owner.name` returns after the healthy calls goes through `bend`."""
        inner, calls = getattr(owner, name), 0

        def changed(*args: object, **kwargs: object) -> object:
            nonlocal calls
            calls += 1
            found = inner(*args, **kwargs)
            if calls <= self.healthy:
                return found
            self.made += 1
            return bend(found)

        self.patches.set(owner, name, changed)

    def drive(self, llm: LLM) -> None:
        """Greedy decoding, watched."""
        with watched(llm.engine.scheduler, self):
            llm.generate(self.prompts, GREEDY)

    def begin(self, name: str) -> None:
        """A span begins: see engine.observe.metrics.Watcher."""

    def end(self, name: str, error: BaseException | None) -> None:
        """A span ends: one that ends in an error was refused at its copy-in, before any replay."""
        if self.made and error is None and name.endswith(" replay"):
            self.forwards_after += 1

    def _model_forward(self, *_: object) -> None:
        if self.made:
            self.forwards_after += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is spoiled, the lowest level that sees it, and what the message must say."""

    trap: str
    inject: Callable[[Injection], None]
    level: Level
    wanted: tuple[str, ...]


def idle_state_with_the_targets_width(run: Injection) -> None:
    llm = run.tiny()
    width = llm.engine.dims["recurrent_hidden"]
    right = torch.zeros

    def zeros(*sizes: Any, **options: Any) -> Tensor:
        run.made += 1
        return right(*(64 if size == width else size for size in sizes), **options)

    run.patches.set(torch, "zeros", zeros)
    llm.engine.scheduler.step.proposer.idle()


def idle_state_with_another_dtype(run: Injection) -> None:
    llm = run.tiny()
    right = torch.zeros

    def zeros(*sizes: Any, **options: Any) -> Tensor:
        run.made += 1
        if options.get("dtype") is torch.int64:
            options["dtype"] = torch.int32
        return right(*sizes, **options)

    run.patches.set(torch, "zeros", zeros)
    llm.engine.scheduler.step.proposer.idle()


def extend_buffer_with_the_drafts_hidden(run: Injection) -> None:
    """3*Hd where the target's 3*Ht belongs."""

    def bend(buffers: VerifyExtendBuffers) -> VerifyExtendBuffers:
        hidden = buffers.hidden_states
        assert hidden is not None
        return replace(buffers, hidden_states=hidden[:, : 3 * 32].contiguous())

    run.healthy %= BUCKETS
    run.change(VerifyExtendBuffers, "allocate", bend)
    run.tiny(graphs=True)


def draft_states_with_a_row_a_request(run: Injection) -> None:
    """(bs, H) where each of K branches has a row: on CUDA seen before the loop is captured."""
    topk = int(str(TREE["topk"]))
    run.change(draft_loop, "_repeated", lambda hidden: hidden[::topk].contiguous())
    run.drive(run.tiny(graphs=True, drafting="drawn"))


def target_fed_without_num_aux(run: Injection) -> None:
    """The last hidden state alone, where the head reads three layers."""
    llm = run.tiny()
    run.change(llm.engine.scheduler.step.prefill, "feed", lambda fed: fed[:, :64])
    run.drive(llm)


def tree_as_wide_as_a_chain(run: Injection) -> None:
    """S+1 nodes where K > 1 makes it N."""
    llm = run.tiny()
    width = llm.engine.dims["num_steps"] + 1
    run.change(llm.engine.scheduler.step.proposer.decode, "grow", lambda tree: _cut(tree, width))
    run.drive(llm)


def law_over_the_targets_vocabulary(run: Injection) -> None:
    llm = run.tiny(drafting="drawn", topk=1, num_draft_tokens=None)
    vocab = llm.engine.dims["target_vocab"]

    def stretched(rows: Any) -> Any:
        shape = (len(rows.logits), vocab - rows.logits.shape[1])
        return replace(rows, logits=torch.cat((rows.logits, rows.logits.new_zeros(shape)), dim=1))

    run.change(llm.engine.scheduler.step.proposer.extend, "forward", stretched)
    run.drive(llm)


def flat_accept_table(run: Injection) -> None:
    llm = run.tiny()
    verify = llm.engine.scheduler.step.verify
    run.change(verify, "accept", lambda found: _bent(found, "accept_index", torch.flatten))
    run.drive(llm)


def flat_accept_table_when_idle(run: Injection) -> None:
    """Without requests the live batch's rank must stay: the next merge would join the two."""
    llm = run.tiny()
    run.healthy = 0
    verify = llm.engine.scheduler.step.verify
    run.change(verify, "accept", lambda found: _bent(found, "accept_index", torch.flatten))
    with watched(llm.engine.scheduler, run):
        llm.engine.scheduler.idle_turn()


def accept_lens_of_another_integer(run: Injection) -> None:
    llm = run.tiny()
    verify = llm.engine.scheduler.step.verify
    run.change(verify, "accept", lambda found: _bent(found, "accept_lens", Tensor.long))
    run.drive(llm)


def pool_with_the_other_models_heads(run: Injection) -> None:
    right = Engine._pool

    def pool(engine: Engine, model: object, memory: Any) -> object:
        run.made += 1
        return right(engine, engine.pair.target.config, memory)

    run.patches.set(Engine, "_pool", pool)
    run.tiny()


def batch_narrower_than_its_buffer(run: Injection) -> None:
    """A copy guarded by `if shapes are equal` would be skipped, and last turn's tree verified."""
    llm = run.tiny(graphs=True)
    run.change(VerifyRows, "of", lambda rows: _cut(rows, 4))
    run.drive(llm)


def first_position_off_by_one(run: Injection) -> None:
    llm = run.tiny()
    decode = llm.engine.scheduler.step.proposer.decode
    run.change(decode, "grow", lambda tree: _bent(tree, "positions", lambda found: found + 1))
    run.drive(llm)


def slots_of_two_requests_overlap(run: Injection) -> None:
    llm = run.tiny(prefill_chunk=64)
    decode = llm.engine.scheduler.step.proposer.decode
    run.change(
        decode, "grow", lambda tree: _bent(tree, "slots", lambda found: found[:1].expand_as(found))
    )
    run.drive(llm)


def draft_ids_beyond_the_targets(run: Injection) -> None:
    llm = run.tiny()
    decode = llm.engine.scheduler.step.proposer.decode
    run.change(decode, "grow", lambda tree: _bent(tree, "draft_tokens", lambda ids: ids + 258))
    run.drive(llm)


def select_index_one_row_too_far(run: Injection) -> None:
    llm = run.tiny()

    def shifted(found: Any) -> Any:
        extend, emitted = found
        return _bent(extend, "select_index", lambda index: index + 1), emitted

    run.change(llm.engine.scheduler.step.commit, "run", shifted)
    run.drive(llm)


def path_that_the_target_did_not_choose(run: Injection) -> None:
    """A child is kept whose token is not what the target said at its parent."""
    llm = run.tiny()

    def generous(found: Any) -> Any:
        index = found.accept_index.clone()
        index[:, 1], index[:, 2:] = 1, -1
        lens = torch.full_like(found.accept_lens, 2)
        return replace(found, accept_index=index, accept_lens=lens)

    run.change(llm.engine.scheduler.step.verify, "accept", generous)
    run.drive(llm)


def _bent(found: Any, name: str, bend: Callable[[Tensor], Tensor]) -> Any:
    return replace(found, **{name: bend(getattr(found, name))})


def _cut(tree: Any, width: int) -> Any:
    """The first `width` nodes of a DraftTree or of VerifyRows."""
    names = ("draft_tokens", "positions", "next_child", "next_sibling", "slots")
    rows = {name: getattr(tree, name)[:, :width] for name in names if hasattr(tree, name)}
    return replace(tree, tree_mask=tree.tree_mask[:, :width, :width], **rows)


def _fault(inject: Callable[[Injection], None], level: Level, *wanted: str) -> Fault:
    return Fault(trap=inject.__name__, inject=inject, level=level, wanted=wanted)


FAULTS: tuple[Fault, ...] = (
    _fault(
        idle_state_with_the_targets_width,
        Level.STRICT,
        "DraftState.idle",
        "recurrent_hidden is 32",
        "64 is target_hidden",
    ),
    _fault(idle_state_with_another_dtype, Level.STRICT, "SHP203 DraftState.idle", "int64"),
    _fault(
        extend_buffer_with_the_drafts_hidden,
        Level.STRICT,
        "VerifyExtendBuffers",
        "extend_hidden is 192",
    ),
    _fault(
        draft_states_with_a_row_a_request,
        Level.STRICT,
        "DraftLoop._forward",
        "hidden_states",
    ),
    _fault(
        target_fed_without_num_aux,
        Level.STRICT,
        "Prefill.run",
        "extend_hidden is 192 (num_aux*target_hidden = 3*64)",
        "64 is target_hidden",
    ),
    _fault(tree_as_wide_as_a_chain, Level.STRICT, "DraftDecode.run", "num_draft_tokens is 8"),
    _fault(
        law_over_the_targets_vocabulary,
        Level.STRICT,
        "DraftExtend._state",
        "draft_vocab is 129",
        "258 is target_vocab",
    ),
    _fault(flat_accept_table, Level.STRICT, "Verify.run", "accept_index", "accept_width"),
    _fault(flat_accept_table_when_idle, Level.STRICT, "Verify.run", "accept_index", "accept_width"),
    _fault(accept_lens_of_another_integer, Level.STRICT, "accept_lens", "int32", "int64"),
    _fault(pool_with_the_other_models_heads, Level.STRICT, "draft_head_dim is 8"),
    _fault(batch_narrower_than_its_buffer, Level.STRICT, "VerifyBuffers.fill", "SHP401"),
    _fault(first_position_off_by_one, Level.FULL, "DraftDecode.run", "positions_follow_depth"),
    _fault(slots_of_two_requests_overlap, Level.FULL, "slots_are_distinct"),
    _fault(draft_ids_beyond_the_targets, Level.FULL, "draft_tokens", "target_vocab"),
    _fault(select_index_one_row_too_far, Level.FULL, "select_index_is_the_last_accepted_row"),
    _fault(
        path_that_the_target_did_not_choose, Level.FULL, "Commit.run", "path_follows_the_target"
    ),
)
