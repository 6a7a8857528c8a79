"""The recorder: answers a trace's questions from the hints and keeps what is evidence."""

# sympy ships no complete types.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import sympy
import torch

from shapecheck.diagnostics import Diagnostic
from shapecheck.symbolic.attribution import Site, calling_site, current_site
from shapecheck.symbolic.evidence import DataHint, Evidence, Meeting, Specialised
from shapecheck.symbolic.expressions import Equation, Expression, Judge
from shapecheck.symbolic.guards import Guard, guard_at
from shapecheck.symbolic.operands import tensors
from shapecheck.symbolic.parties import Parties
from shapecheck.symbolic.provenance import (
    birthplace,
    consequences,
    describe,
    is_cause,
    made_at,
    shape_text,
    taint,
    taints,
)
from shapecheck.symbolic.rank_reads import RankRead
from shapecheck.symbolic.shape_env import Question, expression, is_refusal

# Calls that take a part of a tensor: here `n <= capacity` is a relation worth knowing.
_BOUNDED = frozenset(
    """__getitem__ __setitem__ narrow split topk gather scatter scatter_ scatter_add
    scatter_add_""".split()  # noqa: SIM905  # a list fills a page
)  # fmt: skip
# Calls that choose between a view and a copy: their kernels ask about strides.
_LAYOUT_CALLS = frozenset(
    ["contiguous", "is_contiguous", "reshape", "flatten", "view", "clone", "to", "ravel"]
)


@dataclass(slots=True, kw_only=True)
class Operation:
    """The torch call in progress: what the user wrote, the tensors and sizes it was given."""

    name: str
    site: Site
    operands: tuple[torch.Tensor, ...]
    sizes: tuple[torch.SymInt, ...] = ()
    meetings: list[Meeting] = field(default_factory=list[Meeting])
    refused: list[Expression] = field(default_factory=list[Expression])


@dataclass(slots=True, kw_only=True)
class Recorder:
    """Listens to one trace; what it heard is in `evidence`."""

    parties: Parties
    judge: Judge = field(default_factory=Judge)
    evidence: Evidence = field(default_factory=Evidence)
    operation: Operation | None = None
    _answers: dict[Expression, bool] = field(default_factory=dict[Expression, bool])
    _visits: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    _data: set[Expression] = field(default_factory=set[Expression])
    # What decided the way the code took, and how.
    compared: dict[Expression, Expression | bool] = field(
        default_factory=dict[Expression, "Expression | bool"]
    )
    # Tensors that were given to what did not run, and may have been written to there.
    unseen: list[torch.Tensor] = field(default_factory=list[torch.Tensor])
    # What the operator in progress asked, to be asked again; None when it asked about data.
    asked: list[tuple[Expression, Question | None]] | None = None

    # -- what torch asks ---------------------------------------------------------------------

    def truth(self, expr: Expression, question: Question) -> bool:
        """The answer by the hints; an equality that holds by coincidence becomes evidence."""
        if not self._data.isdisjoint(expr.free_symbols):
            self.asked = None
            return self._truth_of_data(expr, question)
        answer = self._answers.get(expr)
        if answer is None:
            answer = self._answers[expr] = bool(self.judge.value(expr))
        operation, soft = self.operation, question.fallback is not None
        if operation is None or (_is_order(expr) and not self._is_layout(question)):
            self.compared[expr] = answer
        if operation is not None and not answer and question.required:
            operation.refused.append(expr)
        if len(expr.free_symbols) < 2 or self._is_layout(question):
            return answer
        if self.asked is not None:
            self.asked.append((expr, question))
        equations = self.judge.equations(expr, answer)
        if soft and equations:
            # Who can do without the answer asks again, with _check, if it matters.
            return bool(question.fallback)
        if operation is None and self._compared(equations):
            return not answer
        self._hear(expr, answer, equations, soft=soft)
        return answer

    def number(self, expr: Expression) -> int | float:
        """The number of a size at a place that needs one; the place is listed."""
        site = current_site()
        if self.asked is not None:
            self.asked.append((expr, None))
        if not self._data.isdisjoint(expr.free_symbols):
            self.asked = None
            # The number that checks of data let pass most often: not negative, not more than one.
            self.evidence.data_hints.append(DataHint(site=site, answer=True))
            return 1
        value = self.judge.value(expr)
        self.compared[expr] = value
        number = int(value) if value.is_integer else float(value)
        if self.operation is None:
            self.judge.counted |= {
                symbol
                for symbol in expr.free_symbols
                if symbol in self.judge.names and self.parties.may_count(self.judge.names[symbol])
            }
        text = self.judge.text(expr)
        self.evidence.specialised.setdefault(
            (str(site), text), Specialised(text=text, number=number, site=site)
        )
        return number

    def data_size(self, symbol: Expression, *, kind: str) -> None:
        """A size that depends on data gets a small number, never a name."""
        self._data.add(symbol)
        self.asked = None
        self.judge.guess(symbol, 1 if kind == "bool" else 2)

    # -- what the dispatch modes tell --------------------------------------------------------

    def begin(
        self, name: str, operands: Iterable[torch.Tensor], sizes: Iterable[torch.SymInt] = ()
    ) -> Operation:
        """Enter a torch call; the questions until `finish` are its own."""
        self.operation = Operation(
            name=name, site=current_site(), operands=tuple(operands), sizes=tuple(sizes)
        )
        return self.operation

    def finish(self, operation: Operation, results: Iterable[torch.Tensor]) -> None:
        """Leave a torch call: its results get their origin, and the mark of a finding."""
        self.operation = None
        operands = operation.operands
        named = [operand for operand in operands if self.names(operand)]
        if len(named) > 1:
            self.evidence.checked_operations += 1
        causes = taints(operands).union(meeting.taint() for meeting in operation.meetings)
        for result in results:
            made_at(result, self.names(result), operation.site, operation.name, operands)
            if causes:
                taint(result, causes)

    def denied(self, operation: Operation, error: Exception) -> None:
        """A torch call raised: an equality that it asked for in vain is a finding."""
        if operation.meetings or not is_refusal(error):
            return
        for expr in reversed(operation.refused):
            equations = self.judge.wanted(expr)
            for equation in equations:
                self._meet(equation, operation, refused=True)
            if equations:
                return

    def refused(self, operation: Operation, error: Exception) -> None:
        """A torch call raised, and nothing else says why: its sizes disagree.

        sympy sees by itself that 3*h is not h, and then nobody asks.
        """
        names = self._names_of(operation.sizes).union(*map(self.names, operation.operands))
        if names and not operation.meetings and is_refusal(error):
            self._refuse(operation, names, self.judge.readable(str(error)))

    def names(self, tensor: torch.Tensor) -> frozenset[str]:
        """The dimensions that occur in the tensor's shape."""
        return self._names_of(size for size in tensor.shape if isinstance(size, torch.SymInt))

    def _names_of(self, sizes: Iterable[torch.SymInt]) -> frozenset[str]:
        known = self.judge.names
        symbols = (symbol for size in sizes for symbol in expression(size).free_symbols)
        return frozenset(known[symbol] for symbol in symbols if symbol in known)

    def add(self, meeting: Meeting) -> None:
        """Keep a finding of the operation in progress; on a marked operand it is a consequence."""
        operation = self.operation
        meeting = replace(meeting, called_from=calling_site())
        if operation is not None:
            if meeting.taint() in taints(operation.operands):
                meeting = replace(meeting, tainted=True)
            operation.meetings.append(meeting)
        self.evidence.add(meeting)

    def cross(self, broken: Diagnostic, tensor: torch.Tensor | None, names: frozenset[str]) -> None:
        """Keep the finding of a contract; what these names meet later is a consequence of it."""
        held = [] if tensor is None else [tensor]
        _, origins = describe("", held, names, self)
        meeting = Meeting(
            code=broken.code,
            text=broken.message,
            names=names,
            sides=(broken.dims.expected, broken.dims.found) if broken.dims else None,
            site=current_site(),
            origins=origins or self.origins(held),
            tainted=any(is_cause(cause, broken.code, names) for cause in taints(held)),
            broken=broken,
        )
        self.evidence.add(meeting)
        for one in held:
            taint(one, consequences(broken.code, names))

    def read_beyond(self, read: RankRead, site: Site) -> None:
        """Keep the read of an axis that the tensor does not have; it ended the traced code."""
        self.evidence.add(
            Meeting(
                code="SHP203",
                text=f"{read.source} is {self.shape(read.tensor)}, and {read.wanted}",
                names=self.names(read.tensor),
                site=site,
                origins=self.origins([read.tensor]),
                tainted=bool(taints([read.tensor])),
            )
        )

    def divided_by_nothing(self, site: Site) -> None:
        """Keep the division by a number of rows that is 0 here; it ended the traced code."""
        text = "a size that is 0 here divides; without rows the code ends"
        self.evidence.add(Meeting(code="SHP203", text=text, names=frozenset(), site=site))

    def describe_operands(
        self, operation: Operation, names: frozenset[str]
    ) -> tuple[str, tuple[tuple[str, Site], ...]]:
        """The call in words, and for each name the line that brought it in."""
        text, origins = describe(operation.name, operation.operands, names, self)
        given = sorted((names & self._names_of(operation.sizes)) - {name for name, _ in origins})
        if given:
            text += f" given {', '.join(given)}"
        return text, (*origins, *((name, operation.site) for name in given))

    def stub_used(self, name: str, given: object = ()) -> None:
        """A stand-in was called, so what it stands for did not run with what it was given."""
        self.evidence.stubs.add(name)
        self.unseen.extend(tensors(given))

    def hint(self, size: torch.SymInt) -> int:
        """The number behind a size, without asking for it."""
        return int(self.judge.value(expression(size)))

    def origins(self, operands: Iterable[torch.Tensor]) -> tuple[tuple[str, Site], ...]:
        """For each operand, its shape and the line that made it."""
        return tuple(
            (self.shape(operand), site)
            for operand in operands
            if (site := birthplace(operand)) is not None
        )

    def single_name(self, expr: Expression) -> str | None:
        """The dimension, when the size is exactly one."""
        return self.judge.names.get(expr) if expr.is_Symbol else None

    def is_merged(self, left: str, right: str) -> bool:
        """Whether `allow` declared the two dimensions equal."""
        return self.judge.root(left) == self.judge.root(right)

    def branch(self) -> bool:
        """The answer to a branch on data: False on the first visit of its line, then True.

        A branch that only raises is never taken.
        """
        self.asked = None
        site = current_site()
        guard = guard_at(site.file, site.line)
        if guard in (Guard.ASSERT, Guard.REFUSE):
            return guard is Guard.ASSERT
        place = (site.path, site.line)
        self._visits[place] += 1
        answer = self._visits[place] % 2 == 0
        self.evidence.data_hints.append(DataHint(site=site, answer=answer))
        return answer

    def shape(self, tensor: torch.Tensor) -> str:
        """The tensor's shape in names."""
        return shape_text(tensor, self.judge)

    # -- judging -----------------------------------------------------------------------------

    def _hear(
        self, expr: Expression, answer: bool, equations: list[Equation], *, soft: bool
    ) -> None:
        operation = self.operation
        if operation is None:
            return
        for equation in equations:
            self._meet(equation, operation)
        if equations:
            return
        # A hard question that was denied is torch choosing a path; a soft one cuts a slice short.
        if operation.name not in _BOUNDED or not (answer or soft):
            return
        order = self.judge.inequality(expr)
        if order is not None and len(order.names) > 1:
            self.evidence.relate(order, self.parties.of(order.names), operation.site, holds=answer)

    def _compared(self, equations: list[Equation]) -> bool:
        """Keep the code's own comparisons; whether it is to go on as with unequal sizes.

        A branch for equal sizes knows that they are equal, so the general one is traced. Where
        unequal sizes raise or skip a copy, the code goes on with equal ones.
        """
        several = False
        site = current_site()
        for equation in equations:
            if self.parties.are_several(equation.names):
                self.evidence.compare(equation, self.parties.of(equation.names), site)
                several = True
            else:
                self.evidence.note(equation, site)
        return several and guard_at(site.file, site.line) is Guard.BRANCH

    def _meet(self, equation: Equation, operation: Operation, *, refused: bool = False) -> None:
        if not (refused or self.parties.are_several(equation.names)):
            self.evidence.note(equation, operation.site)
            return
        text, origins = self.describe_operands(operation, equation.names)
        self.add(
            Meeting(
                code="SHP303" if self.parties.are_rows(equation.names) else "SHP301",
                text=f"{equation}",
                names=equation.names,
                sides=(equation.left, equation.right),
                site=operation.site,
                operation=text,
                origins=origins,
                refused=refused,
            )
        )

    def _refuse(self, operation: Operation, names: frozenset[str], why: str) -> None:
        text, origins = self.describe_operands(operation, names)
        self.add(
            Meeting(
                code="SHP303" if self.parties.are_rows(names) else "SHP301",
                text=why,
                names=names,
                site=operation.site,
                operation=text,
                origins=origins,
                refused=True,
            )
        )

    def _is_layout(self, question: Question) -> bool:
        if question.about_layout:
            return True
        calls_for_layout = self.operation is not None and self.operation.name in _LAYOUT_CALLS
        return calls_for_layout and question.from_kernel and not question.required

    def _truth_of_data(self, expr: Expression, question: Question) -> bool:
        if question.fallback is not None:
            return question.fallback
        if question.required:
            return True
        if self.operation is not None:
            return bool(self.judge.value(expr))
        # Both arms of a branch on data are seen when the line is visited twice.
        return self.branch()


def _is_order(expr: Expression) -> bool:
    """Whether a comparison asks which of two sizes is larger."""
    return isinstance(expr, (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge))
