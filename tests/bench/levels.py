"""levels: the engine's contracts at any level, switched inside one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import engine.carriers.batch
import engine.carriers.verify
import engine.graphs.buffers
import engine.kv.table
import engine.phases.commit
import engine.phases.draft_decode
import engine.phases.draft_extend
import engine.phases.draft_loop
import engine.phases.prefill
import engine.phases.verify
import engine.proposers.chain
import engine.proposers.lookup
import engine.proposers.model
import engine.proposers.plain
import engine.sampling.batch
from shapecheck import enable
from shapecheck.config import LEVEL_FLAG, Level, settings, use
from shapecheck.spec import contract_of
from tests.bench.patches import Patches

CONTRACTED: tuple[ModuleType, ...] = (
    engine.carriers.batch,
    engine.carriers.verify,
    engine.graphs.buffers,
    engine.kv.table,
    engine.phases.commit,
    engine.phases.draft_decode,
    engine.phases.draft_extend,
    engine.phases.draft_loop,
    engine.phases.prefill,
    engine.phases.verify,
    engine.proposers.chain,
    engine.proposers.lookup,
    engine.proposers.model,
    engine.proposers.plain,
    engine.sampling.batch,
)


@contextmanager
def at_level(level: Level) -> Iterator[None]:
    """The engine's contracts are enforced at this level inside, whatever they were imported at."""
    before = os.environ.get(LEVEL_FLAG)
    with Patches() as patches:
        use(level)
        for module in CONTRACTED:
            _take_off(patches, module)
        undo = [] if level is Level.OFF else [enable(each, level=level) for each in CONTRACTED]
        try:
            yield
        finally:
            # What was put on comes off before what lay below it is put back.
            for one in undo:
                one()
            os.environ.pop(LEVEL_FLAG, None)
            if before is not None:
                os.environ[LEVEL_FLAG] = before
            settings.cache_clear()


def _take_off(patches: Patches, module: ModuleType) -> None:
    """The functions of the module's classes are bare, as if imported at level off."""
    classes = [one for one in vars(module).values() if isinstance(one, type)]
    for owner in [one for one in classes if one.__module__ == module.__name__]:
        for name, value in list(vars(owner).items()):
            found = contract_of(value)
            if found is not None:
                method = isinstance(value, classmethod)
                patches.set(owner, name, classmethod(found.function) if method else found.function)
