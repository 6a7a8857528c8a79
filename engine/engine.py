"""Engine: models, memory, phases and scheduler of one process, put together once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import torch

from engine.backend import Backend
from engine.config import EngineConfig
from engine.dims import Memory, build_dims, check_layers, check_weights
from engine.errors import EngineError
from engine.graphs.buffers import VerifyBuffers
from engine.graphs.captured import Captured
from engine.graphs.runner import Graphs, Replayed
from engine.kv.memory import KVMemory
from engine.kv.pool import KVPool
from engine.kv.prefix import PrefixCache
from engine.kv.slots import SlotAllocator
from engine.kv.table import RequestTable
from engine.models.base import StandaloneDraft
from engine.models.config import ModelConfig
from engine.models.pair import ModelPair
from engine.observe.metrics import Metrics
from engine.phases.commit import Commit
from engine.phases.prefill import Prefill
from engine.phases.verify import Verify, VerifyForward
from engine.proposers.base import Parts, Proposer
from engine.proposers.plain import PlainProposer
from engine.proposers.registry import PROPOSERS
from engine.sampling import SamplingParams
from engine.sampling.params import MAX_SEED
from engine.scheduler.request import Request
from engine.scheduler.scheduler import Scheduler
from engine.step import Step
from shapecheck import Dims


class Engine:
    """Add requests, call `turn` until nothing is unfinished.

    `proposer` runs in place of the one registered for the config's algorithm; that still says
    which models there are and how wide everything is.
    """

    def __init__(
        self, pair: ModelPair, config: EngineConfig, *, proposer: type[Proposer] | None = None
    ) -> None:
        self.pair = pair
        self.config = config
        self.metrics = Metrics()
        self.backend = Backend.of(config)
        device = torch.device(config.device)
        self.max_context = config.context(pair.target.config)
        columns = config.columns(pair.target.config)
        num_slots = config.slots(pair.target.config)
        memory = Memory(
            req_rows=config.max_requests + 1, max_context=columns, num_slots=num_slots + 1
        )
        self.dims = build_dims(config, pair.target.config, pair.draft_config, memory)
        check_weights(self.dims, pair.target.weights())
        check_layers(self.dims, pair.target)
        self.table = RequestTable(rows=memory.req_rows, columns=columns, device=device)
        self.target_pool = self._pool(pair.target.config, memory)
        # Once, whatever the level: a pool with the other model's heads is wrong from the start.
        self.target_pool.as_target().check(self.dims)
        self.draft_pool = None
        draft_attention = None
        if pair.draft is not None:
            inner = pair.draft.model if isinstance(pair.draft, StandaloneDraft) else pair.draft
            check_weights(self.dims, inner.weights())
            self.draft_pool = self._pool(pair.draft.config, memory)
            self.draft_pool.as_draft().check(self.dims)
            draft_attention = self.backend.attention(self.draft_pool, self.table)
        parts = Parts(
            config=config,
            dims=self.dims,
            table=self.table,
            device=device,
            draft=pair.draft,
            attention=draft_attention,
            graphs=self._graphs(self.dims),
            ops=self.backend.ops(),
        )
        kind = proposer or PROPOSERS[config.algorithm]
        allocator = SlotAllocator(memory.num_slots)
        prefix = None
        if config.prefix_cache:
            prefix = PrefixCache(allocator, block=config.prefix_block, shift=kind.shift)
        self.memory = KVMemory(self.table, allocator, prefix)
        self.scheduler = Scheduler(
            self._step(kind.build(parts), parts),
            self.memory,
            narrow=self._narrow(parts) if kind.may_pass else None,
            metrics=self.metrics,
            target_vocab=self.dims["target_vocab"],
            prefill_chunk=config.prefill_chunk,
            device=device,
        )
        self._numbered = 0
        # Threads may share an engine: each drives turns until its own requests are done.
        self._lock = threading.RLock()

    def _step(self, proposer: Proposer, parts: Parts) -> Step:
        """The phases around a proposer, all with its Dims."""
        dims, target, feed = parts.dims, self.pair.target, proposer.feed
        attention = self.backend.attention(self.target_pool, self.table)
        forward = VerifyForward(target=target, attention=attention, feed=feed)
        return Step(
            prefill=Prefill(dims=dims, target=target, attention=attention, feed=feed),
            proposer=proposer,
            verify=Verify(
                dims=dims,
                forward=parts.graphs.wrap(forward, VerifyBuffers),
                accept=proposer.accept,
            ),
            commit=Commit(dims=dims, table=self.table, shift=proposer.shift, ops=parts.ops),
            metrics=self.metrics,
        )

    def _narrow(self, parts: Parts) -> Step:
        """A step of plain decoding over the same memory, with a Dims of its own."""
        one = (1, "plain decoding verifies the root alone")
        dims = parts.dims.with_sizes(num_draft_tokens=one, accept_width=one)
        # One memory pool for all graphs of an engine.
        narrow = replace(parts, dims=dims, graphs=replace(parts.graphs, dims=dims))
        return self._step(PlainProposer.build(narrow), narrow)

    def _graphs(self, dims: Dims) -> Graphs:
        device = torch.device(self.config.device)
        kind = Captured if device.type == "cuda" else Replayed
        return (kind if self.config.replays else Graphs)(
            dims=dims,
            max_requests=self.config.max_requests,
            max_seq_len=self.max_context,
            device=device,
        )

    def _pool(self, model: ModelConfig, memory: Memory) -> KVPool:
        return KVPool(
            model,
            num_slots=memory.num_slots,
            dtype=self.config.torch_dtype,
            device=self.config.device,
        )

    def add(self, prompt: Sequence[int], params: SamplingParams) -> Request:
        """A request that waits for its turn; EngineError when it cannot be served."""
        if isinstance(prompt, (str, bytes)) or not all(isinstance(one, int) for one in prompt):
            raise EngineError(
                f"an engine reads token ids, not {prompt!r:.80}; encode the text with the "
                "tokenizer of the pair"
            )
        if not isinstance(params, SamplingParams):
            raise EngineError(f"params are SamplingParams, not {params!r:.80}; give some")
        if not prompt:
            raise EngineError("the prompt has no tokens; give at least one")
        if len(prompt) >= self.max_context:
            raise EngineError(
                f"the prompt has {len(prompt)} tokens and max_context is {self.max_context}; "
                "shorten it or raise max_context"
            )
        vocab = self.dims["target_vocab"]
        strange = next((token for token in prompt if not 0 <= token < vocab), None)
        if strange is not None:
            raise EngineError(
                f"prompt token {strange} is outside target_vocab={vocab}; "
                "encode the prompt with this model's tokenizer"
            )
        with self._lock:
            request = Request.of(
                self._numbered,
                prompt,
                params,
                seed=(self.config.seed + self._numbered) & MAX_SEED,
                max_context=self.max_context,
                tokenizer=self.pair.tokenizer,
            )
            self.scheduler.add(request)
            self._numbered += 1
            return request

    def turn(self) -> list[Request]:
        """One turn of the scheduler; the requests that grew."""
        with self._lock, self.on_device():
            return self.scheduler.turn()

    def abort(self, request: Request) -> None:
        """The request ends now if it has not ended, and holds nothing any more."""
        with self._lock, self.on_device():
            self.scheduler.abort(request)

    def on_device(self) -> torch.cuda.device:
        """Inside, this thread's streams, events and kernels are those of the engine's device."""
        device = torch.device(self.config.device)
        return torch.cuda.device(device if device.type == "cuda" else -1)

    def run(self) -> None:
        """Every request is finished."""
        while self.scheduler.unfinished:
            self.turn()
