"""Drives the wild programs with torch: each function runs one until its mistake shows.

A driver gets the modules of a program by their last name, and returns when nothing is wrong. What
a program hides in silence, the driver asserts.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace as Space

import torch

Driver = Callable[[Space], object]
DRIVERS: dict[str, Driver] = {}


def drives(document: str) -> Callable[[Driver], Driver]:
    """Register a driver for a document of `wild/`."""

    def register(driver: Driver) -> Driver:
        DRIVERS[document] = driver
        return driver

    return register


def ids(*shape: int) -> torch.Tensor:
    """Token ids, all zero."""
    return torch.zeros(shape, dtype=torch.int64)


@drives("capacity_capture_cap")
def _capture_cap(program: Space) -> None:
    config = Space(num_attention_heads=2, kv_lora_rank=3, v_head_dim=4)
    scheduler = Space(max_num_seqs=2, max_num_batched_tokens=50)
    drafter = program.drafter.Drafter(config, scheduler, 1, "cpu")
    drafter.prefill(torch.zeros(40, 2, 3), torch.tensor([0, 40]))


@drives("capacity_token_budget")
def _token_budget(program: Space) -> None:
    spec = Space(draft_model_config=Space(mask_token_id=0), num_speculative_tokens=3)
    scheduler = Space(max_num_seqs=8, max_num_batched_tokens=16)
    config = Space(scheduler_config=scheduler, speculative_config=spec)
    speculator = program.speculator.BlockSpeculator(config, "cpu")
    assert speculator.fill(ids(8), torch.arange(8)) == 32


@drives("padding_uneven_dp")
def _uneven_ranks(program: Space) -> None:
    config = Space(qk_rope_head_dim=4, max_position_embeddings=10, num_slots=20)
    drafter = program.drafter.Drafter(config, Space(max_over_ranks=lambda rows: 4), "cpu")
    batch = Space(
        positions=torch.arange(4),
        slot_mapping=torch.arange(4),
        seq_lens=torch.ones(4),
        reqs=[1, 2, 3],
    )
    drafter.step(batch, torch.zeros(3, 4))


@drives("padding_dp_counts")
def _rank_counts(program: Space) -> None:
    args = Space(dp_size=2, dp_rank=1, enable_dp_attention=True, moe_dense_tp=True)
    runner = Space(server_args=args, model_config=Space(hidden_size=4))
    graphs = program.graphs.DraftExtendGraphs(runner, 2, 3)
    graphs.fill(2)
    assert graphs.gather(torch.zeros(12, 4)).shape == (6, 4)


@drives("padding_block_mask")
def _block_mask(program: Space) -> None:
    trainer = program.mask.DraftTrainer(Space(num_attention_heads=2), 4, 5)
    trainer.step(torch.zeros(1, 50, 8))


@drives("padding_uniform_decode")
def _uniform_decode(program: Space) -> None:
    draft = Space(num_speculative_tokens=2, hidden_size=4)
    runner = program.runner.SpeculativeRunner(Space(capture_sizes=[4, 8]), draft, 64)
    runner.capture()
    assert all(prefills == 0 for _, prefills in runner.graphs.values())


@drives("padding_piecewise_capture")
def _piecewise_capture(program: Space) -> None:
    compilation = program.sizes.CompilationConfig("piecewise", [4, 8, 16])
    drafter = program.drafter.Drafter(compilation, Space(hidden_size=4), 2, 8)
    drafter.replay(2, torch.zeros(6, 4))


@drives("shard_mtp_hidden")
def _sharded_rows(program: Space) -> None:
    group = Space(
        reduce_scatter=lambda rows: rows[: rows.shape[0] // 2],
        all_gather=lambda rows: torch.cat([rows, rows]),
    )
    target = program.target.TargetModel(Space(hidden_size=4), 8, group)
    target.forward(torch.ones(6, 4), 6)
    rows = program.target.Drafter(target, lambda ids, rows: rows).propose(ids(6))
    assert bool((rows == 1).all())


@drives("rows_phantom_request")
def _phantom_request(program: Space) -> None:
    dispatcher = program.dispatch.Dispatcher([12, 24], 5)
    config = Space(hidden_size=4, vocab_size=7)
    proposer = program.drafter.DraftModelProposer(dispatcher, config, 5)
    runner = program.drafter.Runner(proposer, 8)
    assert runner.step(Space(reqs=[1]), torch.zeros(24, 4)).shape == (1, 5)


@drives("rows_decoder_mask")
def _decoder_mask(program: Space) -> None:
    class Target:
        config = Space(is_encoder_decoder=True)

        def __call__(self, decoder_input_ids, decoder_attention_mask):
            assert decoder_attention_mask.shape == decoder_input_ids.shape
            return Space(logits=torch.zeros(*decoder_input_ids.shape, 5))

    candidates = program.assisted.Candidates(
        lambda tokens: Space(logits=torch.zeros(*tokens.shape, 5)), 3
    )
    verifier = program.assisted.Verifier(Target())
    verifier.verify(candidates, ids(1, 2), {"decoder_attention_mask": torch.ones(1, 2)})


@drives("rows_position_embeddings")
def _position_embeddings(program: Space) -> None:
    config = Space(head_dim=4, rope_theta=10.0, hidden_size=4)
    model = program.model.SelfSpeculative(config, 1)
    model.layers = [program.model.Layer(config), program.model.Layer(config)]
    model.draft(torch.ones(2, 4), 0)
    model.draft(torch.ones(2, 4), 2)
    assert model.verify_remainder(torch.ones(1, 4), 0).shape == (5, 4)


@drives("rows_k_overrun")
def _overrun(program: Space) -> None:
    spec = Space(num_speculative_tokens=2)
    manager = program.speculative.SpeculativeManager(spec, 4)
    manager.propose(Space(generate=lambda states: ids(3, 4)), torch.zeros(3, 4), 3)
    assert manager.metadata().draft_lengths.tolist() == [2, 2, 2]


@drives("rows_dispatch_key")
def _dispatch_key(program: Space) -> None:
    dispatcher = program.dispatch.GraphDispatcher([4, 8], 3, 16)
    dispatcher.capture_keys()
    assert dispatcher.dispatch(8) is not None


@drives("vocab_lm_head_sharing")
def _lm_head_sharing(program: Space) -> None:
    draft = Space(draft_vocab_size=3, hidden_size=4)
    proposer = program.proposer.Proposer(draft, Space(vocab_size=9))
    proposer.load(Space(embed_tokens=None, lm_head=torch.nn.Linear(4, 9)))
    proposer.propose(torch.zeros(2, 4))


@drives("vocab_short_map")
def _short_map(program: Space) -> None:
    model = program.model.DraftModel(Space(draft_vocab_size=6, hidden_size=4), Space(vocab_size=20))
    batch = {"input_ids": torch.tensor([3, 4, 5, 3]), "loss_mask": torch.ones(4)}
    model.set_vocab([batch])
    assert int(model.t2d.sum()) == 6


@drives("vocab_tokenizer")
def _tokenizer(program: Space) -> None:
    def generate(prefix: torch.Tensor) -> Space:
        return Space(logits=torch.zeros(prefix.shape[0], 4, 12), ids=ids(prefix.shape[0], 4))

    target = Space(generate=generate, model_config=Space(vocab_size=12))
    draft = Space(generate=lambda prefix, length: ids(prefix.shape[0], length))
    args = program.lookup.Args(4, 4)
    loop = program.lookup.DraftTargetLoop(args, target, draft, Space(vocab_size=10))
    loop.run(ids(1, 2))


@drives("vocab_padding")
def _vocab_padding(program: Space) -> None:
    worker = program.worker.SpecDecodeWorker(
        Space(hidden_size=2, vocab_size=8), Space(hidden_size=4, vocab_size=10)
    )
    worker.verify(torch.zeros(3, 2), torch.zeros(3, 4))


@drives("index_gather_minus_one")
def _gather_minus_one(program: Space) -> None:
    buffers = program.graphs.GatherBuffers(Space(hidden_size=4), 2, 3)
    step = program.graphs.DraftStep(buffers, lambda picked: picked)
    step.capture(2, Space(num_prefill=0, is_extend=False))


@drives("hidden_backbone")
def _backbone(program: Space) -> None:
    config = program.assistant.AssistantConfig(4, 6)
    proposer = program.proposer.Proposer(config, 8, "cpu")
    proposer.propose(torch.zeros(3, 6), torch.zeros(3, 6))


@drives("hidden_eagle_buffer")
def _eagle_buffer(program: Space) -> None:
    draft = Space(get_hidden_size=lambda: 4, hidden_size=4, vocab_size=5)
    target = Space(get_hidden_size=lambda: 6, hidden_size=6)
    config = Space(
        speculative_config=Space(num_speculative_tokens=2, draft_model_config=draft),
        scheduler_config=Space(max_num_batched_tokens=8),
        model_config=target,
    )
    proposer = program.proposer.Proposer(config, "cpu")
    proposer.load(Space(load=lambda config: program.head.EagleHead(config, target).bfloat16()))
    states = torch.zeros(3, 18, dtype=torch.bfloat16)
    proposer.propose(ids(3), torch.arange(3), states, torch.tensor([2]))


@drives("dtype_kv_cache")
def _kv_dtype(program: Space) -> None:
    draft = Space(
        num_key_value_heads=2,
        num_attention_heads=2,
        head_dim=4,
        hidden_size=8,
        dtype=torch.bfloat16,
    )
    cache = program.cache.CacheConfig(2, "fp8")
    config = Space(speculative_config=Space(draft_model_config=draft), cache_config=cache)
    attention = program.attention.build(config, 4)
    attention.forward(torch.zeros(3, 8, dtype=torch.bfloat16), ids(1))


@drives("dtype_recv")
def _received_dtype(program: Space) -> None:
    sent: list[torch.Tensor] = []
    program.link.dist = Space(
        send=lambda rows, dst: sent.append(rows),
        recv=lambda rows, src: rows.view(torch.uint8).copy_(sent.pop(0).view(torch.uint8)),
    )
    target = Space(hidden_size=4, dtype=torch.bfloat16)
    draft = Space(dtype=torch.float16)
    program.link.TargetSide(target, draft, 1).send_prefill(
        Space(hidden_states=torch.ones(3, 4, dtype=torch.bfloat16))
    )
    received = program.link.DraftSide(target, draft, 0, "cpu").receive_prefill()
    assert bool((received == 1).all())


@drives("kv_geometry_swa_heads")
def _kv_heads(program: Space) -> None:
    args = Space(
        tp_size=1,
        slots=8,
        device="cpu",
        target_config=Space(num_key_value_heads=4, head_dim=4, num_hidden_layers=2),
        draft_config=Space(num_hidden_layers=1, swa_num_key_value_heads=8, swa_head_dim=3),
    )
    runner = program.runner.ModelRunner(args, is_draft_worker=True)
    attention = program.runner.DraftAttention(args.draft_config, 0, 1)
    attention.forward(torch.zeros(2, 48), torch.arange(2), runner.pool)


@drives("hidden_silent_copy_skip")
def _skipped_copy(program: Space) -> None:
    def runner(width: int) -> Space:
        return Space(model_config=Space(hidden_size=width, dtype=torch.float32))

    worker = Space(device="cpu", draft_runner=runner(4), target_runner=runner(6))
    graphs = program.graphs.ExtendGraphRunner(worker, 8)
    batch = Space(num_tokens=2, input_ids=ids(2), positions=ids(2))
    graphs.fill(batch, Space(hidden_states=torch.ones(2, 6)))
    assert float(graphs.buffers.hidden_states.sum()) == 12


@drives("hidden_standalone_idle_merge")
def _idle_merge(program: Space) -> None:
    def load(config: Space) -> Callable[[Space], Space]:
        states = torch.zeros(2, config.hidden_size, dtype=config.dtype)
        return lambda batch: Space(hidden_states=states, next_ids=ids(2))

    args = Space(device="cpu", draft_path="draft-4", model_path="target-6", load=load)
    worker = program.worker.StandaloneWorker(args, program.runner.ModelRunner(args))
    idle, live = Space(is_idle=lambda: True), Space(is_idle=lambda: False)
    worker.prepare(idle)
    worker.after_prefill(live)
    worker.join(idle, live)
