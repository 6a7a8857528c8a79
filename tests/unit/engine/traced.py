"""The engine under trace: real phases on fake tensors, every proposer, idle and merge included.

Nothing of the engine is replaced but the Dims it would build for itself, whose sizes are symbols
here. There are no weights and no numbers, and no device. What only repeats is done as often as it
differs: a layer or two of each model, one round of the generator behind the coins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TypeVar
from unittest.mock import patch

import torch

import engine.dims
import engine.engine
from engine.attention.base import Ragged
from engine.carriers import BatchRows, DraftState, PrefillExtendInput, PrefillInput
from engine.config import EngineConfig
from engine.engine import Engine
from engine.models.base import DraftModel, StandaloneDraft
from engine.models.config import ModelConfig
from engine.models.eagle import Eagle1, Eagle3
from engine.models.eagle_config import EagleConfig
from engine.models.llama import CausalLM
from engine.models.pair import ModelPair
from engine.models.seeded import tiny_config, tiny_eagle_config
from engine.sampling import BatchControls
from engine.sampling.batch import BatchSampling
from engine.sampling.penalties import TokenCounts
from engine.step import Live, Step
from engine.tokenizer import ByteTokenizer
from shapecheck import Dims
from shapecheck.symbolic import Report, Trace, trace

Model = TypeVar("Model", bound=torch.nn.Module)
# Rotary positions and table columns; more than any request here has.
_LENGTH = 64
# What the config says is also what the engine allocates: no symbol, but the same number.
_SLOTS = 99
_MEMORY = engine.dims.Memory(req_rows=17, max_context=128, num_slots=_SLOTS + 1)
# The package has a function of this name.
_COINS = import_module("engine.sampling.coins")
_EAGLE_1 = {
    "draft_vocab == target_vocab": "EAGLE-1 scores with the target's own head",
    "draft_hidden == target_hidden": "EAGLE-1's states take the place of the target's in fc",
}
_ONE_TABLE = {"draft_vocab == target_vocab": "a stand-alone draft reads and gives target ids"}
_CHAIN = {"draft_vocab == target_vocab": "without a draft model the target's own ids are proposed"}
ALLOWED: Mapping[str, Mapping[str, str]] = {
    "none": _CHAIN,
    "ngram": _CHAIN,
    "standalone": _ONE_TABLE,
    "eagle": _EAGLE_1,
    "eagle3": {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One engine and the numbers behind its symbols.

    `narrow` traces the step of plain decoding too, where the engine has one.
    """

    algorithm: str
    topk: int = 1
    drafting: str = "best"
    graphs: bool = False
    penalties: bool = False
    setting: str = "equal"
    narrow: bool = True
    layers: int | None = None
    hints: Mapping[str, int] = field(default_factory=dict[str, int])

    def __str__(self) -> str:
        numbers = [f"{name}={number}" for name, number in self.hints.items()]
        parts = [self.algorithm, f"topk {self.topk}", self.drafting, self.setting, *numbers]
        switches = [name for name in ("graphs", "penalties") if getattr(self, name)]
        return ", ".join([*parts, *switches])


def report_of(case: Case, *, first: bool = False) -> Report:
    """What this engine needed; an error in it ends the run and is reported.

    With `first` the run ends at the first hand-over after a finding.
    """
    config = EngineConfig.of(
        target="tiny",
        algorithm=case.algorithm,
        num_steps=3,
        topk=case.topk,
        num_draft_tokens=None if case.topk == 1 else 5,
        drafting=case.drafting,
        graphs=case.graphs,
        num_slots=_SLOTS,
        dtype="bfloat16",
    )
    target = tiny_config(hidden=64, layers=_layers(case))
    draft = _draft_config(config, target)
    dims = engine.dims.build_dims(config, target, draft, _MEMORY)
    with (
        trace(
            dims,
            setting=case.setting,
            hints=_numbers(case),
            within=["engine"],
            one_dtype=True,
        ) as t,
        torch.inference_mode(),
        patch.object(_COINS, "_ROUNDS", 1),
    ):
        for equality, reason in ALLOWED[case.algorithm].items():
            t.allow(equality, reason=reason)
        t.run(_driven, t, _drive(t, case, config, target, draft), first)
    return t.report()


def _driven(t: Trace, turns: Iterator[None], first: bool) -> None:
    for _ in turns:
        if first and t.report().findings:
            return


def _drive(
    t: Trace, case: Case, config: EngineConfig, target: ModelConfig, draft: ModelConfig | None
) -> Iterator[None]:
    built = _engine(t, case, config, _pair(t, target, draft))
    rows, sampling = _rows(t), _sampling(t, case)
    for step in _steps(case, built):
        state = _read(t, step, sampling)
        yield
        live = Live(rows=rows, state=step.proposer.idle().merge(state), sampling=sampling)
        # A row that the host knows has an n-gram index.
        for row in rows.rows_on_host:
            step.proposer.observe(row, [1, 2, 3, 1, 2])
        # What a state is made of shows when it is read: a merge alone joins rows of any number.
        for _ in range(2 if draft is None else 1):
            step.iterate(live)
            yield
        _join_and_leave(t, live.state, step.proposer.idle())
    built.scheduler.idle_turn()


def _layers(case: Case) -> int:
    """An EAGLE-3 head reads the inputs of several layers."""
    return case.layers or (2 if case.algorithm == "eagle3" else 1)


def _numbers(case: Case) -> Mapping[str, int]:
    """A tree of three levels has every kind of node."""
    tree = {"num_steps": 3} if case.topk > 1 else {}
    if case.algorithm == "none":
        tree = {"num_steps": 0}  # as the engine's own Dims has it
    layers = {"target_layers": _layers(case)}
    if case.algorithm == "standalone":
        layers["draft_layers"] = 1
    return {**layers, "num_slots": _MEMORY.num_slots, **tree, **case.hints}


def _steps(case: Case, built: Engine) -> Iterator[Step]:
    yield built.scheduler.step
    if case.narrow and built.scheduler.narrow is not None:
        yield built.scheduler.narrow


def _read(t: Trace, step: Step, sampling: BatchSampling) -> DraftState:
    """Prefill of one prompt in two chunks whose length has a name, and the draft's extend.

    The first chunk ends no prompt, so nothing is selected; the second has a prefix, as has the
    prompt of a request that was preempted or that found its beginning in the cache.
    """
    _chunk(t, step, BatchSampling.idle(torch.device("cpu")), prefix=0, bs=0)
    return _chunk(t, step, sampling, prefix=8, bs="bs")


def _chunk(
    t: Trace, step: Step, sampling: BatchSampling, *, prefix: int, bs: int | str
) -> DraftState:
    work = Ragged(req_rows=(1,), prefix_lens=(prefix,), extend_lens=(t.size("tokens"),))
    batch = t.make(PrefillInput, fields={"work": work}, bs=bs)
    output = step.prefill.run(batch)
    bonus_B = sampling.first_tokens(output.logits, batch.seq_lens)
    ids_T = batch.input_ids.index_copy(0, batch.select_index, bonus_B)
    extend = PrefillExtendInput(
        hidden_states=output.hidden_states,
        input_ids=t.ids(ids_T, "target_vocab"),
        positions=batch.positions,
        seq_lens=batch.seq_lens,
        req_rows_index=torch.zeros_like(batch.seq_lens),
        select_index=batch.select_index,
        work=work,
    )
    return step.proposer.after_prefill(extend, sampling)


def _join_and_leave(t: Trace, state: DraftState, idle: DraftState) -> None:
    """Requests join a running batch, an idle one joins it, and some leave."""
    state.merge(idle).merge(state).filter(t.tensor("bs", torch.int64))
    idle.merge(idle).filter(torch.zeros(0, dtype=torch.int64))


def _rows(t: Trace) -> BatchRows:
    # The host's list has a length of its own: read as a number, `bs` would be one from here on.
    count = t.recorder.hint(t.size("bs"))
    return BatchRows(
        req_rows_index=t.tensor("bs", torch.int64),
        seq_lens=t.tensor("bs", torch.int64),
        max_seq_len=20,
        rows_on_host=tuple(range(1, count + 1)),
    )


def _sampling(t: Trace, case: Case) -> BatchSampling:
    drawn = case.drafting == "drawn"
    flags = {"all_greedy": not drawn, "truncates": drawn, "penalises": case.penalties}
    controls = t.make(BatchControls, fields=flags)
    counts = t.make(TokenCounts) if case.penalties else None
    if case.penalties:
        _count(t)
    return BatchSampling(controls=controls, counts=counts)


def _count(t: Trace) -> None:
    """Histories are counted on the host, for every request of a batch; a new one has no output."""
    prompts = [[1, 2]] * int(t.size("bs"))
    vocab = t.size("target_vocab")
    for outputs in (prompts, [[]] * len(prompts)):
        TokenCounts.of(prompts, outputs, target_vocab=vocab, device=torch.device("cpu"))


def _engine(t: Trace, case: Case, config: EngineConfig, pair: ModelPair) -> Engine:
    """The engine itself, over Dims that hand out symbols."""
    # One bucket of the graphs is a symbol too, whatever the batch.
    if case.graphs:
        config = config.model_copy(update={"max_requests": t.size("padded_bs")})

    def symbols(*_: object) -> Dims:
        return t.dims

    with patch.object(engine.engine, "build_dims", symbols):
        return Engine(pair, config)


def _pair(t: Trace, target: ModelConfig, draft: ModelConfig | None) -> ModelPair:
    aux = draft.aux_layers if isinstance(draft, EagleConfig) else ()
    model = CausalLM(t.config(target, "target"), aux_layers=aux, length=_LENGTH)
    _cast(model, t.dtype("target"))
    return ModelPair(target=model, draft=_draft(t, draft, model), tokenizer=ByteTokenizer())


def _draft(t: Trace, draft: ModelConfig | None, target: CausalLM) -> DraftModel | None:
    if draft is None:
        return None
    if not isinstance(draft, EagleConfig):
        model = CausalLM(t.config(draft, "draft"), role="draft", length=_LENGTH)
        return StandaloneDraft(_cast(model, t.dtype("draft")))
    sizes = {
        "vocab": "target_vocab",
        "draft_vocab": "draft_vocab",
        "target_hidden": "target_hidden",
    }
    config = t.config(draft, "draft", **sizes)
    if draft.version == "eagle":
        return _cast(Eagle1(config, target, length=_LENGTH), t.dtype("draft"))
    head = _cast(Eagle3(config, target, length=_LENGTH), t.dtype("draft"))
    t.offset(head.d2t, "draft_vocab", "target_vocab")
    return head


def _cast(model: Model, dtype: torch.dtype) -> Model:
    """As the engine's own loader does it: parameters alone, the tables of angles stay float32."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    return model


def _draft_config(config: EngineConfig, target: ModelConfig) -> ModelConfig | None:
    if config.algorithm == "eagle" or config.algorithm == "eagle3":
        return tiny_eagle_config(target, version=config.algorithm)
    return tiny_config(hidden=64, layers=1) if config.algorithm == "standalone" else None


def findings_of(cases: Iterable[Case]) -> list[str]:
    """Everything that trace holds against the engine in these cases, a stopped run included."""
    said: list[str] = []
    for case in cases:
        report = report_of(case)
        said += [f"{case}: {one.primary} {one.code} {one.message}" for one in report.findings]
        if report.vacuous:
            said.append(f"{case}: {report.vacuous}")
    return said
