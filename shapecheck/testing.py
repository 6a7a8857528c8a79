"""For tests: carriers that keep their contract, and Dims in which no two names coincide."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from shapecheck.asked import (
    refuse_no_carrier,
    refuse_no_dims,
    refuse_no_names,
    refuse_no_values,
    refuse_sizes,
    refuse_unused,
)
from shapecheck.dims.model import Dims
from shapecheck.dims.vocabulary import lookup
from shapecheck.distinct import DistinctDims, distinct_dims
from shapecheck.errors import ShapecheckError
from shapecheck.made import Filler
from shapecheck.spec import (
    CarrierSpec,
    HintSpec,
    OptionalSpec,
    PhasedSpec,
    SequenceSpec,
    Spec,
    TensorSpec,
    TupleSpec,
    UnionSpec,
    absent_tensor,
    alternative,
    carrier_of,
    contract_of,
)

if TYPE_CHECKING:
    import torch

__all__ = ["DistinctDims", "distinct_dims", "make", "make_arguments"]

T = TypeVar("T")
_LIST_LENGTH = 2
_BLANKS: Mapping[object, object] = {int: 0, float: 0.0, bool: False, str: "", type(None): None}


def make(
    carrier: type[T],
    dims: Dims,
    bs: int = 3,
    *,
    phase: str | None = None,
    absent: Collection[str] = (),
    fields: Mapping[str, object] | None = None,
    device: str = "cpu",
    seed: int = 0,
    **sizes: int,
) -> T:
    """A carrier whose tensors keep its contract under `dims`, the same for the same arguments.

    One keyword per per-call name (`tokens=7`). An Optional field is present unless the pair has
    no such tensor or its name is in `absent`; a field without tensors takes its value from
    `fields`, its default, or a blank. Floats are normal, ids and indices lie in their axis, or are
    the pad where it is empty, other integers and bools are 0. Raises ShapecheckError for a size or
    value that must be given, and for an index of an axis without positions or a pad.
    """
    return make_named(
        carrier,
        dims,
        {"bs": bs, **sizes},
        said=sizes,
        phase=phase,
        absent=absent,
        fields=fields,
        device=device,
        seed=seed,
    )


def make_named(
    carrier: type[T],
    dims: Dims,
    sizes: Mapping[str, int],
    *,
    said: Collection[str],
    phase: str | None = None,
    absent: Collection[str] = (),
    fields: Mapping[str, object] | None = None,
    device: str = "cpu",
    seed: int = 0,
) -> T:
    """`make` with a size for every per-call name, of which the caller said some."""
    refuse_no_carrier("make", carrier)
    where = f"make({carrier.__name__})"
    refuse_no_dims(where, dims)
    refuse_sizes(where, sizes)
    refuse_unused(where, [CarrierSpec(cls=carrier)], said, dims)
    refuse_no_names(where, "absent", absent)
    refuse_no_values(where, "fields", fields)
    maker = _Maker(
        dims=dims,
        sizes=dict(sizes),
        phase=phase,
        absent=frozenset(absent),
        fields=dict(fields or {}),
        filler=_filler(dims, device, seed),
    )
    made = maker.carrier(carrier, carrier.__name__)
    unused = [name for name in (*maker.fields, *maker.absent) if name not in maker.used]
    if unused:
        raise ShapecheckError(
            f"{where}: {', '.join(unused)}: `fields` names fields without tensors "
            "and `absent` names Optional ones; correct the name"
        )
    return made


def make_arguments(
    function: Callable[..., object],
    dims: Dims,
    bs: int = 3,
    *,
    given: Mapping[str, object] | None = None,
    device: str = "cpu",
    seed: int = 0,
    **sizes: int,
) -> dict[str, object]:
    """Keyword arguments for a function with a @contract, made like `make` makes fields.

    A parameter takes its value from `given`, from the contract, from its default, or a blank; the
    receiver is left out. Raises ShapecheckError for a function without a contract.
    """
    return make_arguments_named(
        function, dims, {"bs": bs, **sizes}, said=sizes, given=given, device=device, seed=seed
    )


def make_arguments_named(
    function: Callable[..., object],
    dims: Dims,
    sizes: Mapping[str, int],
    *,
    said: Collection[str],
    given: Mapping[str, object] | None = None,
    device: str = "cpu",
    seed: int = 0,
) -> dict[str, object]:
    """`make_arguments` with a size for every per-call name, of which the caller said some."""
    contract = contract_of(function)
    if contract is None:
        raise ShapecheckError(
            f"make_arguments({getattr(function, '__qualname__', function)!r}): it has no "
            "@contract; decorate it, or build its arguments by hand"
        )
    where = f"make_arguments({contract.where})"
    refuse_no_dims(where, dims)
    refuse_sizes(where, sizes)
    refuse_unused(where, [one.spec for one in contract.spec.parameters], said, dims)
    refuse_no_values(where, "given", given)
    strange = sorted(set(given or {}) - set(contract.signature.parameters))
    if strange:
        raise ShapecheckError(f"{where}: no parameter is called {strange[0]}; correct the name")
    maker = _Maker(
        dims=dims,
        sizes=dict(sizes),
        phase=contract.spec.phase,
        absent=frozenset(),
        fields={},
        filler=_filler(dims, device, seed),
    )
    made = dict(given or {})
    for parameter in contract.spec.parameters:
        declared = contract.signature.parameters[parameter.name]
        if parameter.name in made or parameter.name == contract.receiver:
            continue
        if isinstance(parameter.spec, HintSpec) and (
            declared.default is not declared.empty
            or declared.kind in (declared.VAR_POSITIONAL, declared.VAR_KEYWORD)
        ):
            continue
        made[parameter.name] = maker.value(parameter.spec, f"{contract.where}({parameter.name})")
    if contract.spec.dims_parameter is not None:
        made.setdefault(contract.spec.dims_parameter, dims)
    return made


@dataclass(slots=True, kw_only=True)
class _Maker:
    dims: Dims
    sizes: dict[str, int]
    phase: str | None
    absent: frozenset[str]
    fields: dict[str, object]
    filler: Filler
    used: set[str] = dataclasses.field(default_factory=set[str])

    def carrier(self, cls: type[T], path: str) -> T:
        given: dict[str, object] = {}
        blank = {item.name: item for item in dataclasses.fields(cls)}  # pyright: ignore[reportArgumentType]  # carriers are dataclasses
        for item in carrier_of(cls).fields:
            if isinstance(item.spec, HintSpec):
                value = self._plain(item.spec, blank[item.name], f"{path}.{item.name}")
            elif item.name in self.absent and isinstance(item.spec, OptionalSpec):
                self.used.add(item.name)
                value = None
            else:
                value = self.value(item.spec, f"{path}.{item.name}")
            if blank[item.name].init:
                given[item.name] = value
        for name, parameter in inspect.signature(cls).parameters.items():
            if name not in given:  # an InitVar, or a parameter of the class's own __init__
                if name in self.fields:
                    self.used.add(name)
                    given[name] = self.fields[name]
                elif parameter.default is parameter.empty:
                    raise _no_blank(f"{path}.{name}", name)
        return cls(**given)

    def value(self, spec: Spec, path: str) -> object:
        match spec:
            case TensorSpec():
                return self._tensor(spec, path)
            case OptionalSpec(item=item):
                missing = absent_tensor(item, self.dims, self.phase) is not None
                return None if missing else self.value(item, path)
            case PhasedSpec():
                return self.value(alternative(spec, path, self.phase), path)
            case CarrierSpec(cls=cls):
                return self.carrier(cast("type[object]", cls), path)
            case UnionSpec(items=items):
                return self.carrier(cast("type[object]", items[0].cls), path)
            case SequenceSpec(container=container, item=item):
                items = [self.value(item, f"{path}[{index}]") for index in range(_LIST_LENGTH)]
                return tuple(items) if container is tuple else items
            case TupleSpec(items=items):
                return tuple(self.value(item, f"{path}[{i}]") for i, item in enumerate(items))
            case HintSpec(hint=hint) if hint in _BLANKS:
                return _BLANKS[hint]
            case HintSpec(hint=hint):
                raise ShapecheckError(f"make: no blank value for {path}: {hint}; build it by hand")

    def _tensor(self, spec: TensorSpec, path: str) -> torch.Tensor:
        shape = [axis.evaluate(lambda name: self._size(name, path)) for axis in spec.shape.axes]
        axis = spec.indexes
        known = axis is not None and all(map(self._knows, axis.symbols()))
        positions = axis.evaluate(lambda name: self._size(name, path)) if axis and known else None
        return self.filler.filled(spec, shape, positions, path)

    def _knows(self, name: str) -> bool:
        """Whether a name has a size; one that binds per call may be that of another tensor."""
        return name in self.sizes or not (_is_per_call(name) or self.dims.get(name) is None)

    def _size(self, name: str, path: str) -> int:
        if name in self.sizes:
            return self.sizes[name]
        if _is_per_call(name):
            raise ShapecheckError(f"make: {path} has {name} rows; give {name}=...")
        return self.dims[name]

    def _plain(self, spec: HintSpec, field: dataclasses.Field[object], path: str) -> object:
        if field.name in self.fields:
            self.used.add(field.name)
            return self.fields[field.name]
        if field.default is not dataclasses.MISSING:
            return field.default
        if field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
        if spec.hint in _BLANKS:
            return _BLANKS[spec.hint]
        raise _no_blank(path, field.name)


def _filler(dims: Dims, device: str, seed: int) -> Filler:
    import torch

    try:
        generator = torch.Generator(device=device).manual_seed(seed)
    except (RuntimeError, TypeError, ValueError) as error:
        said = str(error).partition("\n")[0].partition(". ")[0]
        raise ShapecheckError(
            f"make: device={device!r}, seed={seed!r}: {said}; give a device of this machine and a "
            "whole number"
        ) from error
    return Filler(dims=dims, device=device, generator=generator)


def _is_per_call(name: str) -> bool:
    declared = lookup(name)
    return declared is not None and declared.per_call


def _no_blank(path: str, name: str) -> ShapecheckError:
    return ShapecheckError(f"make: no blank value for {path}; give fields={{{name!r}: ...}}")
