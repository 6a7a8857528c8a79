"""The real kernel, asked about ranks and dtypes: a fake one takes more than it does.

Every operator runs once on small real tensors for each set of ranks and dtypes it meets, of the
sizes that this run has, and again with all sizes alike. Filled with zeros or with ones: a refusal
that holds for only some of these is about values or sizes. An axis of no rows is a size too, and
one that the code does not see coming: what is taken with rows alone is a finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch.overrides import (
    resolve_name,  # pyright: ignore[reportUnknownVariableType]  # torch leaves it untyped
)

from shapecheck.symbolic.evidence import Meeting
from shapecheck.symbolic.index_operators import INDEXING, LOOKUPS, TAKES
from shapecheck.symbolic.operands import leaves, tensors
from shapecheck.symbolic.real_kernels import Arguments, Keywords, refusal, takes
from shapecheck.symbolic.shape_env import Operator, expression, is_refusal, sizes_of, without_modes

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder

# Their sizes depend on values, and neither zeros nor ones need fit.
_OF_VALUES = frozenset(
    {
        "repeat_interleave", "segment_reduce", "_embedding_bag", "embedding_bag",
        "_embedding_bag_forward_only", "_pack_padded_sequence", "_pad_packed_sequence",
        "masked_scatter", "masked_scatter_", "_ctc_loss", "_grouped_mm", "_scaled_grouped_mm",
        "_jagged_to_padded_dense_forward", "_padded_dense_to_jagged_forward", "histogram",
        "histogramdd", "_assert_async", "_linalg_check_errors", "_sparse_coo_tensor_unsafe",
        "_validate_sparse_coo_tensor_args", "_validate_compressed_sparse_indices",
    }
)  # fmt: skip
# What these are refused for are numbers, and numbers are no one's rank.
_BY_NUMBERS = frozenset(["view", "reshape", "unflatten", "split", "chunk", "narrow", "as_strided"])
_RESHAPES = frozenset(["view", "reshape", "unflatten"])
# Rows that stand on an axis of none.
_SOME = 3
_WITH_ROWS = "return before this line where there are no rows"
_SIZE = "write the size in place of -1"
_FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


@dataclass(slots=True)
class Kernels:
    """The kernels that were asked in one trace."""

    recorder: Recorder
    _asked: set[object] = field(default_factory=set[object])

    def ask(self, func: Operator, args: Arguments, kwargs: Keywords, result: object) -> None:
        """Report a refusal of operands that the fake kernel took."""
        operation = self.recorder.operation
        # An operator of a project may have effects: only torch's own are run.
        if operation is None or func.namespace != "aten" or func.is_view:
            return
        if torch.Tag.nondeterministic_seeded in func.tags or operation.meetings:
            return
        if func.overloadpacket.__name__ in _OF_VALUES:
            return
        operands = list(tensors((args, kwargs)))
        key = (func, tuple((one.dtype, one.dim(), _is_empty(one)) for one in operands))
        if not operands or key in self._asked:
            return
        filling = self._filling(func, args)
        if any(map(self._depends_on_data, tensors((filling or args, kwargs)))):
            return  # whether its sizes fit no number made up here can tell
        self._asked.add(key)
        refused = refusal(func, filling or args, kwargs, self._hint, result)
        if filling is None:  # else its sizes fit: what is refused is so for a rank or a dtype
            if refused is None:
                refused = self._refuses_floats(func, args, kwargs, operands)
            elif not refusal(func, args, kwargs, _one_or_two, result):
                # Whether an index has elements where there are no rows depends on the batch.
                looks_up = func.overloadpacket in (*LOOKUPS, *INDEXING, *TAKES)
                if not looks_up and self._takes_rows(func, args, kwargs, operands):
                    self._report(_no_rows(refused), operands, _WITH_ROWS)
                refused = None
        if refused:
            self._report(f"torch refuses these ranks or dtypes ({refused})", operands)

    def _depends_on_data(self, tensor: torch.Tensor) -> bool:
        symbols = {one for size in sizes_of(tensor) for one in size.free_symbols}
        return not symbols <= set(self.recorder.judge.names)

    def _filling(self, func: Operator, args: Arguments) -> Arguments | None:
        """The arguments of a write behind a mask with a value for each place of it, of the rank and
        dtype that are written: how many there are neither zeros nor ones tell.
        """
        if func.overloadpacket.__name__ not in ("index_put", "index_put_", "_index_put_impl_"):
            return None
        table, index, value, *rest = args
        masks = [one for one in tensors(index) if one.dtype is torch.bool]
        if not masks:
            return None
        fitting: list[int] = []  # one number, where other indices count along
        if len(index) == 1:
            sizes, places = [self._hint(size) for size in table.shape], masks[0].dim()
            fitting = [math.prod(sizes[:places]), *sizes[places:]]
            missing = value.dim() - len(fitting)
            fitting = [1] * missing + fitting if missing > 0 else fitting[-missing:]
        with without_modes():
            return (table, index, torch.ones(fitting, dtype=value.dtype), *rest)

    def _refuses_floats(
        self, func: Operator, args: Arguments, kwargs: Keywords, operands: list[torch.Tensor]
    ) -> str | None:
        """What the kernel says of floats of any width, where it takes whole numbers.

        A kernel that is only not there for one dtype may be there on another device.
        """
        given = {one.dtype for one in operands if one.dtype.is_floating_point}
        if not given:
            return None
        said: str | None = None
        for dtype in (*_FLOATS, torch.int64):
            dtypes = dict.fromkeys(given, dtype)
            refused = refusal(func, args, kwargs, _one_or_two, lacking=True, dtypes=dtypes)
            if (refused is None) is (dtype in _FLOATS):
                return None
            said = said or refused
        return said

    def ask_with_rows(
        self, func: Callable[..., object], args: Arguments, kwargs: Keywords, error: Exception
    ) -> None:
        """Report a refused call that is taken as soon as there are rows."""
        operation = self.recorder.operation
        if operation is None or operation.meetings or not is_refusal(error):
            return
        operands = list(tensors((args, kwargs)))
        if operation.name in _RESHAPES:
            if any(map(_is_empty, operands)) and _leaves_open(operation.name, args, kwargs):
                text = "no size follows for -1 where an axis of no rows stands beside it"
                self._report(text, operands, _SIZE)
        elif (
            _is_torchs_own(func)
            and self._takes_rows(func, args, kwargs, operands)
            and refusal(func, args, kwargs, self._hint)
        ):
            said = self.recorder.judge.readable(str(error))
            self._report(_no_rows(said), operands, _WITH_ROWS)

    def ask_again(
        self, func: Callable[..., object], args: Arguments, kwargs: Keywords, error: Exception
    ) -> None:
        """Report a refused call when its operands are refused whatever their sizes are."""
        operation = self.recorder.operation
        operands = list(tensors((args, kwargs)))
        if operation is None or not operands or not is_refusal(error):
            return
        if not _is_torchs_own(func) or operation.name in _BY_NUMBERS or operation.meetings:
            return
        said = self.recorder.judge.readable(str(error))
        # All sizes alike: what is refused still is so for a rank or a dtype.
        if refusal(func, args, kwargs, _one_or_two, lacking=True):
            self._report(f"torch refuses these ranks or dtypes ({said})", operands)

    def _takes_rows(
        self,
        func: Callable[..., object],
        args: Arguments,
        kwargs: Keywords,
        operands: Iterable[torch.Tensor],
    ) -> bool:
        """Whether the kernel takes the operands with rows on every axis that has none."""
        return any(map(_is_empty, operands)) and takes(
            func, args, kwargs, lambda size: self._hint(size) or _SOME
        )

    def _hint(self, size: int) -> int:
        return self.recorder.hint(size) if isinstance(size, torch.SymInt) else size

    def _report(self, said: str, operands: list[torch.Tensor], remedy: str = "") -> None:
        operation = self.recorder.operation
        assert operation is not None, "an operation is in progress"
        shown = " and ".join(
            f"{str(one.dtype).removeprefix('torch.')}{self.recorder.shape(one)}"
            for one in operands[:4]
        )
        self.recorder.add(
            Meeting(
                code="SHP203",
                text=said,
                names=frozenset(),
                site=operation.site,
                operation=f"{operation.name} of {shown}",
                origins=self.recorder.origins(operands),
                remedy=remedy,
            )
        )


def _no_rows(said: str) -> str:
    return f"torch refuses an axis of no rows ({said})"


def _is_empty(tensor: torch.Tensor) -> bool:
    return any(expression(size) == 0 for size in tensor.shape)


def _leaves_open(name: str, args: Arguments, kwargs: Keywords) -> bool:
    """Whether a reshape of nothing leaves a size open beside one of 0, so that any would do."""
    given = args[2:] if name == "unflatten" else args[1:]
    numbers = (one for one in leaves((given, dict(kwargs))) if isinstance(one, int | torch.SymInt))
    sizes = [expression(one) for one in numbers]
    return -1 in sizes and 0 in sizes


def _one_or_two(size: int) -> int:
    return 1 if expression(size) == 1 else 2


def _is_torchs_own(func: Callable[..., object]) -> bool:
    """Whether it is known to run no operator of a project, which may have effects."""
    operator = getattr(func, "_qualified_op_name", None)
    if isinstance(operator, str):
        return operator.startswith("aten::")
    if hasattr(func, "namespace"):
        return getattr(func, "namespace", None) == "aten"
    return resolve_name(func) is not None
