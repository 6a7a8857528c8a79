"""Mutants are one edit each, in an order that does not change, and rules make what they say."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
LIST = """
import json, sys
from pathlib import Path
from tests.mutation.mutants import mutants, sample
found = sample(mutants(Path(sys.argv[1])), sys.argv[2])
print(json.dumps([[one.key, one.rule, one.path, one.before, one.after] for one in found]))
"""


def _listed(sample: str = "all", *, engine: Path = ROOT / "engine") -> list[list[str]]:
    # In a process of its own, where `tests` is a package of the working directory.
    run = subprocess.run(
        [sys.executable, "-c", LIST, str(engine), sample],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return json.loads(run.stdout)


def test_every_rule_makes_mutants_and_each_is_new() -> None:
    found = _listed()
    rules = {rule for _, rule, *_ in found}
    assert len(found) >= 150
    assert len({key for key, *_ in found}) == len(found)
    # The rules take turns: the first mutants are of as many rules as there are.
    assert len({rule for _, rule, *_ in found[: len(rules)]}) == len(rules)


def test_known_mistakes_are_among_them() -> None:
    edits = {(rule, path, before, after) for _, rule, path, before, after in _listed()}
    assert ("dropped-factor", "models/eagle_config.py", "self.num_aux * self.target_hidden",
            "self.target_hidden") in edits  # fmt: skip
    assert ("idle-with-rows", "carriers/batch.py", "0", "1") in edits
    assert ("wrong-ids", "sampling/hot_vocab.py", "self.hot[draft_ids]", "draft_ids") in edits


def test_what_was_looked_at_is_not_in_the_sample_that_is_reported() -> None:
    pilot, final = _listed("pilot"), _listed("final")
    assert len(pilot) >= 50
    assert {key for key, *_ in pilot}.isdisjoint(key for key, *_ in final)
    assert sorted([*pilot, *final]) == sorted(_listed())


def test_a_key_stays_while_other_places_change(tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    shutil.copytree(ROOT / "engine", engine)
    file = engine / "carriers" / "batch.py"
    file.write_text(file.read_text() + "\n\nLATER = 3\n")
    assert _listed("final", engine=engine) == _listed("final")
