"""Whose sizes meet: two models, or rows of two kinds, are evidence; one model alone is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shapecheck.dims.vocabulary import Owner

MODELS = frozenset({Owner.TARGET, Owner.DRAFT})
_REQUESTS = ("bs", "padded_bs")
# Widths are never counted with; these are, in loops over steps, branches, layers and heads.
_COUNTED_ENDINGS = ("_layers", "_heads")


@dataclass(frozen=True, slots=True)
class Parties:
    """The owner of every dimension of a trace."""

    owners: Mapping[str, Owner]

    def of(self, names: Iterable[str]) -> frozenset[Owner]:
        """The owners of these dimensions."""
        return frozenset(self.owners[name] for name in names)

    def are_several(self, names: Iterable[str]) -> bool:
        """Whether the sizes belong to more than one: a model, or a kind of rows.

        Heads and key/value heads of one model may well be equal; `topk` and `bs` have no reason to.
        """
        return len({self._party(name) for name in names}) > 1

    def are_rows(self, names: Iterable[str]) -> bool:
        """Whether no model has a part in it."""
        return self.of(names).isdisjoint(MODELS)

    def is_model(self, name: str) -> bool:
        """Whether the dimension is the target's or the draft's."""
        return self.owners[name] in MODELS

    def is_batch(self, name: str) -> bool:
        """Whether the dimension counts the requests of a batch."""
        return name in _REQUESTS

    def are_algorithm(self, names: Iterable[str]) -> bool:
        """Whether there are names and all are the algorithm's: sizes that no batch fills."""
        return {self.owners.get(name) for name in names} == {Owner.ALGORITHM}

    def are_both_models(self, left: str, right: str) -> bool:
        """Whether one dimension is the target's and the other the draft's."""
        return self.of((left, right)) == MODELS

    def may_count(self, name: str) -> bool:
        """Whether code loops over this dimension."""
        return not self.is_model(name) or name.endswith(_COUNTED_ENDINGS)

    def _party(self, name: str) -> str:
        return str(self.owners[name]) if self.is_model(name) else name
