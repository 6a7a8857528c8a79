"""Owner flips: which reads of a program become mutants, and what they become."""

from __future__ import annotations

import ast
import textwrap

from tests.wild.flips import listed
from tests.wild.mutate import Mutant, mutants

SOURCE = """\
class EagleDraftInput:
    @classmethod
    def hidden_size_for(cls, worker):
        config = worker.target_worker.model_runner.model_config
        if config.hidden_size != 4:
            raise ValueError(f"{config.hidden_size}")
        width = int(config.hidden_size)
        return width

    def idle(self, worker):
        return make(EagleDraftExtendInput.hidden_size_for(worker))

    def other(self, worker):
        return make(worker.model_config.hidden_size)
"""


def test_only_reads_that_can_size_a_tensor_are_flipped() -> None:
    found = list(mutants("a.py", SOURCE))
    assert [(one.line, one.rule, one.before, one.after) for one in found] == [
        (7, "path", "config", "_draft_runner_of(worker).model_config"),
        (11, "accessor", "EagleDraftExtendInput", "EagleDraftInput"),
    ]


def test_a_mutant_changes_one_read() -> None:
    for mutant in mutants("a.py", SOURCE):
        text = mutant.applied(SOURCE)
        ast.parse(text)
        changed = [
            number
            for number, (old, new) in enumerate(
                zip(SOURCE.splitlines(), text.splitlines(), strict=True), 1
            )
            if old != new
        ]
        assert changed == [mutant.line]


def test_a_class_that_the_file_lacks_is_imported_behind_everything_else() -> None:
    text = "def idle(worker):\n    return EagleDraftExtendInput.hidden_size_for(worker)\n"
    (mutant,) = mutants("a.py", f"class Runner:\n{textwrap.indent(text, '    ')}")
    applied = mutant.applied(f"class Runner:\n{textwrap.indent(text, '    ')}")
    assert applied.splitlines()[2] == "        return EagleDraftInput.hidden_size_for(worker)"
    assert applied.splitlines()[-1].endswith("import EagleDraftInput")


def test_the_committed_list_is_one_mutant_a_place() -> None:
    made = listed()
    assert len({one.name for one in made}) == len(made) == 14
    assert all(isinstance(one, Mutant) and one.before != one.after for one in made)
