"""`trace`: run real code on fake tensors whose sizes are named symbols, and keep what it needed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch

from shapecheck.asked import refuse_no_dims, refuse_no_names
from shapecheck.dims.expr import Poly
from shapecheck.dims.model import Dims
from shapecheck.dims.parse import parse_shape
from shapecheck.dims.vocabulary import Owner, lookup, near_misses
from shapecheck.errors import ShapecheckError, ShapeContractError
from shapecheck.symbolic.asked import (
    axes_of,
    device_of,
    refuse_hints,
    refuse_ids,
    refuse_model,
    refuse_negative,
    refuse_no_index,
    refuse_no_source,
    refuse_receiver,
    setting_of,
)
from shapecheck.symbolic.attribution import current_site, site_of_error
from shapecheck.symbolic.bounds import Bounds
from shapecheck.symbolic.constructs import constructs
from shapecheck.symbolic.contracts import Contracts
from shapecheck.symbolic.dispatch import CallMode, OperatorMode
from shapecheck.symbolic.domains import Domains, Ids, Offset
from shapecheck.symbolic.dtypes import DRAFT_DTYPE, TARGET_DTYPE
from shapecheck.symbolic.hints import Plan, Setting, plan
from shapecheck.symbolic.indices import Indices
from shapecheck.symbolic.kernels import Kernels
from shapecheck.symbolic.loader import SourceTree
from shapecheck.symbolic.model_config import with_sizes
from shapecheck.symbolic.parties import Parties
from shapecheck.symbolic.rank_reads import rank_read
from shapecheck.symbolic.recorder import Recorder
from shapecheck.symbolic.repeats import Repeats
from shapecheck.symbolic.report import Allowed, Report, build_report
from shapecheck.symbolic.shape_env import (
    RecordingShapeEnv,
    check_surface,
    expression,
    fake_tensors,
)
from shapecheck.symbolic.traced_dims import TracedDims
from shapecheck.testing import make_arguments_named, make_named

Model = Literal["target", "draft"]
Dtype = torch.dtype | Model
Config = TypeVar("Config")
Result = TypeVar("Result")
Made = TypeVar("Made")


class Trace:
    """One traced run: hands out named sizes and tensors, and reports which had to be equal."""

    def __init__(
        self, dims: Dims | None, numbers: Plan, setting: str, *, one_dtype: bool = False
    ) -> None:
        check_surface()
        self._dims = dims
        self._plan = numbers
        self._setting = setting
        self._draft_dtype = TARGET_DTYPE if one_dtype else DRAFT_DTYPE
        self._allowed: list[Allowed] = []
        self._stopped: str | None = None
        owners = {name: _owner(name, dims) for name in numbers.numbers}
        self.recorder = Recorder(parties=Parties(owners))
        self.domains = Domains(self.recorder)
        self.indices = Indices(self.recorder)
        self.bounds = Bounds(self.recorder, self.indices.said)
        self._env = RecordingShapeEnv(self.recorder)
        self._trees: dict[str, SourceTree] = {}
        self._sizes: dict[str, int] = {}
        for name, number in numbers.numbers.items():
            if numbers.is_symbol(name):
                symbol, size = self._env.named_size(name, number)
                self.recorder.judge.know(symbol, name, number)
                self._sizes[name] = size
            elif name not in numbers.formulas:
                self._sizes[name] = number
        for name, formula in numbers.formulas.items():
            self._sizes[name] = self._evaluate(parse_shape(formula).axes[0])
        self.dims = TracedDims.of(dims, self._sizes, owners, draft_dtype=self._draft_dtype)
        self.contracts = Contracts(
            dims=self.dims,
            recorder=self.recorder,
            domains=self.domains,
            indices=self.indices,
            bounds=self.bounds,
        )

    # -- what the traced code is given ---------------------------------------------------------

    def size(self, text: str) -> int:
        """A size by name or formula (`bs*topk`); a symbol that passes for an int."""
        axes = axes_of("size", text)
        if len(axes) != 1:
            raise ShapecheckError(f"size({text!r}): one axis is wanted, write it without spaces")
        return self._evaluate(axes[0])

    def dtype(self, model: Model) -> torch.dtype:
        """The dtype that stands for a model's compute dtype in this trace."""
        refuse_model(f"dtype {model!r}", model, "'target', 'draft' or a torch dtype")
        return TARGET_DTYPE if model == "target" else self._draft_dtype

    def tensor(
        self,
        shape: str,
        dtype: Dtype = torch.float32,
        *,
        ids: Model | None = None,
        device: torch.device | str = "cpu",
    ) -> torch.Tensor:
        """A fake tensor of the named shape; `ids` marks its values as ids of that vocabulary."""
        sizes = [self._evaluate(axis) for axis in axes_of("tensor", shape)]
        refuse_negative(shape, sizes, self.recorder)
        real = dtype if isinstance(dtype, torch.dtype) else self.dtype(dtype)
        if ids is not None:
            refuse_ids(shape, ids, real)
        made = torch.empty(sizes, dtype=real, device=device_of(shape, device))
        if ids is not None:
            self.ids(made, f"{ids}_vocab")
        return made

    def make(
        self,
        cls: type[Made],
        *,
        phase: str | None = None,
        absent: Collection[str] = (),
        fields: Mapping[str, object] | None = None,
        **sizes: str | int,
    ) -> Made:
        """A carrier with a fake tensor in every field; keywords set names, `tokens="bs*topk"`.

        `absent` leaves Optional fields out, `fields` gives values that are no tensors.
        """
        rows = self._per_call(sizes)
        return make_named(
            cls, self.dims, rows, said=sizes, phase=phase, absent=absent, fields=fields
        )

    def call(
        self,
        function: Callable[..., Any],
        *receiver: object,
        given: Mapping[str, object] | None = None,
        **sizes: str | int,
    ) -> Any:
        """Call a function that has a @contract with arguments made from it.

        `given` holds arguments by name, `sizes` sets names like `make`. Raises ShapecheckError
        for a function without a contract.
        """
        refuse_receiver(function, receiver)
        rows = self._per_call(sizes)
        made = make_arguments_named(function, self.dims, rows, said=sizes, given=given)
        return function(*receiver, **made)

    def load(self, root: str | Path, target: str) -> Any:
        """`package.module:Qualified.name` from a source tree, without importing the package.

        What cannot be loaded becomes a stub, and a stub that is called stands in the report.
        """
        refuse_no_source(root, target)
        tree = self._trees.setdefault(str(root), SourceTree(Path(root), self.recorder.stub_used))
        return tree.load(target)

    def has_size(self, name: str) -> bool:
        """Whether the name has a size in this pair."""
        return name in self._sizes

    def config(self, config: Config, model: Model, **fields: str) -> Config:
        """A copy of a HF-style config (object, dataclass or mapping) whose sizes are `model`'s.

        A keyword sets another field, or one that is not this model's: an EAGLE-3 head embeds the
        target's ids, `vocab_size="target_vocab"`.
        """
        refuse_model(f"config(..., {model!r})", model)
        others = {field: self.size(text) for field, text in fields.items()}
        return with_sizes(config, model, self._sizes, others)

    def shape(self, tensor: torch.Tensor) -> str:
        """The tensor's shape in names, as `[bs, draft_hidden]`."""
        return self.recorder.shape(tensor)

    def ids(self, tensor: torch.Tensor, axis: str) -> torch.Tensor:
        """Declare that the values count along `axis`, for example `target_vocab`."""
        refuse_no_index("ids", tensor)
        self.domains.tag(tensor, Ids(self._known(axis), "t.ids", current_site()))
        self.bounds.forget(tensor)
        return tensor

    def offset(self, tensor: torch.Tensor, source: str, target: str) -> torch.Tensor:
        """Declare that the values lead from `source` ids to `target` ids when added (d2t)."""
        refuse_no_index("offset", tensor)
        self.domains.tag(tensor, Offset(self._known(source), self._known(target)))
        self.bounds.forget(tensor)
        return tensor

    def allow(self, equality: str, *, reason: str) -> None:
        """Declare an equality that the project requires, as `target_vocab == draft_vocab`."""
        if not str(reason or "").strip():
            raise ShapecheckError(f"allow({equality!r}): say why, reason='...'")
        match = re.fullmatch(r"\s*(\S+)\s*==\s*(\S+)\s*", str(equality))
        if match is None:
            raise ShapecheckError(f"allow({equality!r}): write it as 'target_vocab == draft_vocab'")
        left, right = (expression(self.size(side)) for side in match.groups())
        self.recorder.judge.merge(left, right)
        self._allowed.append(Allowed(text=equality.strip(), reason=reason))

    # -- the outcome ---------------------------------------------------------------------------

    def run(self, function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result | None:
        """Call the function; an error in it is kept for the report instead of raised.

        So is an exit: let through, `sys.exit(0)` would end the trace as if all were well.
        """
        try:
            return function(*args, **kwargs)
        except (Exception, SystemExit, GeneratorExit) as error:
            self.stop(error)
            return None

    def stop(self, error: BaseException) -> None:
        """Keep the error that ended the traced code; one of a contract is its finding."""
        if isinstance(error, ShapeContractError):
            self.recorder.cross(error.diagnostic, None, frozenset())
        elif (read := rank_read(error)) is not None:
            self.recorder.read_beyond(read, site_of_error(error))
        elif isinstance(error, ZeroDivisionError):
            self.recorder.divided_by_nothing(site_of_error(error))
        message = self.recorder.judge.readable(str(error))
        site = site_of_error(error)
        self._stopped = f"{type(error).__name__}: {message}, at {site} in {site.function}"

    def report(self) -> Report:
        """What the run needed; call it inside or after the `with` block."""
        origins = (
            {}
            if self._dims is None
            else {name: self._dims.origin(name) for name in self._dims.names()}
        )
        return build_report(
            self.recorder.evidence,
            origins=origins,
            allowed=self._allowed,
            stopped=self._stopped,
            setting=self._setting,
            numbers=self._plan.without_symbol(),
        )

    @contextmanager
    def active(self, packages: Iterable[str]) -> Generator[Trace]:
        """The block in which torch is traced."""
        with ExitStack() as stack:
            stack.enter_context(constructs(packages, self.recorder.hint))
            # Compiled code would hide the lines that ask.
            stack.enter_context(torch.compiler.set_stance("force_eager"))
            mode = stack.enter_context(fake_tensors(self._env))
            repeats = Repeats(self.recorder, self._env, mode)
            kernels = Kernels(self.recorder)
            stack.enter_context(
                OperatorMode(
                    self.recorder, kernels, self.domains, self.indices, self.bounds, repeats
                )
            )
            stack.enter_context(CallMode(self.recorder, kernels))
            stack.enter_context(self.contracts.held())
            try:
                yield self
            except Exception as error:
                self.stop(error)
                raise

    def _evaluate(self, axis: Poly[str]) -> int:
        return axis.evaluate(lambda name: self._sizes[self._known(name)])

    def _per_call(self, sizes: Mapping[str, str | int]) -> dict[str, int]:
        """The size of every name that binds per call, replaced by those the caller sets."""
        numbers = {name: self._sizes[name] for name in self._sizes if _is_per_call(name)}
        for name, size in sizes.items():
            numbers[self._known(name)] = self.size(size) if isinstance(size, str) else size
        return numbers

    def _known(self, name: str) -> str:
        if name in self._sizes:
            return name
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a test's
            raise ShapecheckError(f"{name!r} is no name; write one such as 'target_vocab'")
        if self._dims is not None:
            return str(self._dims[name])  # raises and says why it has no number
        near = "".join(f"did you mean {each}? else " for each in near_misses(name)[:1])
        raise ShapecheckError(
            f"{name!r} is not in the vocabulary: {near}declare it before the trace"
        )


@contextmanager
def trace(
    dims: Dims | None = None,
    *,
    setting: Setting | str = Setting.EQUAL,
    hints: Mapping[str, int] | None = None,
    within: Iterable[str] = (),
    one_dtype: bool = False,
) -> Generator[Trace]:
    """Trace the block: `t.report()` says which named dimensions had to be equal.

    `dims` gives names and numbers of a real pair; without it every name of the vocabulary gets a
    number of its own. `setting` chooses equal or unequal numbers for the two models, `hints`
    replaces single numbers (0 and 1 become plain ints), `within` names the packages whose
    `len` and `isinstance` see symbols; the calling module is always among them. `one_dtype` is
    for an engine that computes both models in one dtype by design; else they get two.
    """
    chosen = setting_of(setting)
    if dims is not None:
        refuse_no_dims("trace", dims)
    refuse_hints(hints)
    refuse_no_names("trace", "within", within)
    numbers = plan(dims, chosen, hints)
    label = ", ".join(
        [str(chosen), *(f"{name}={number}" for name, number in (hints or {}).items())]
    )
    with Trace(dims, numbers, label, one_dtype=one_dtype).active([*within, _caller()]) as running:
        yield running


def _caller() -> str:
    frame = inspect.currentframe()
    skipped = (__name__, "contextlib")
    while frame is not None and frame.f_globals.get("__name__") in skipped:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")) if frame is not None else ""


def _owner(name: str, dims: Dims | None) -> Owner:
    if dims is not None and name in dims:
        return dims.owner(name)
    declared = lookup(name)
    assert declared is not None
    return declared.owner


def _is_per_call(name: str) -> bool:
    declared = lookup(name)
    return declared is not None and declared.per_call
