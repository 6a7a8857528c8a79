"""What docs/engine.md shows is run, as it stands there."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_the_proposer_of_the_page_works(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "engine.md").read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "class RepeatProposer" in block]
    # From a file: contracts read the annotations of a module's source.
    file = tmp_path / "repeat_proposer.py"
    file.write_text(code)
    spec = importlib.util.spec_from_file_location("repeat_proposer", file)
    assert spec is not None
    assert spec.loader is not None
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    assert len(page.repeated.token_ids) > 1
    assert page.repeated.token_ids == page.plain.token_ids
    assert page.llm.engine.scheduler.step.proposer.dims["num_draft_tokens"] == 4
    assert page.repeated.metrics.iterations > 0


def test_the_map_names_files_that_exist() -> None:
    text = (DOCS / "architecture.md").read_text()
    root = DOCS.parent
    section, checked = root, 0
    for line in text.splitlines():
        if line.startswith("## "):
            section = root / line[3:]
        if line.startswith("| `"):
            for name in re.findall(r"`([\w./]+(?:/|\.py))`", line.split("|")[1]):
                assert (section / name).exists(), name
                checked += 1
    assert checked > 20
