"""The README's decorator and every example of docs/contracts.md run and do what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shapecheck.dims.parse import parse_shape
from shapecheck.errors import ContractTextError

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/contracts.md").read_text()
README = (ROOT / "README.md").read_text()

SIZES = {"num_attention_heads": 16, "num_hidden_layers": 2, "vocab_size": 32000}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.fixture
def run(tmp_path: Path):
    """Runs a program beside the two configs of the page; gives its standard error."""
    for model, hidden in (("target", 4096), ("draft", 2048)):
        config = {
            **SIZES,
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": hidden,
            "intermediate_size": 4 * hidden,
            "dtype": "bfloat16",
        }
        (tmp_path / model).mkdir()
        (tmp_path / model / "config.json").write_text(json.dumps(config))

    def program(text: str, level: str) -> str:
        (tmp_path / "program.py").write_text(text)
        done = subprocess.run(
            [sys.executable, "program.py"],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "SHAPECHECK": level},
        )
        return done.stderr

    return program


def test_every_example_of_the_page_runs(run) -> None:
    assert run("\n".join(blocks(PAGE, "python")), "full") == ""


def test_the_error_of_the_readme_is_the_one_its_decorator_raises(run) -> None:
    imports = blocks(PAGE, "python")[0]
    snippet = next(block for block in blocks(README, "python") if "@contract" in block)
    call = (
        "worker = DraftWorker()\n"
        "worker.dims = dims\n"
        "wrong = torch.zeros(12, 2048, dtype=torch.bfloat16)\n"
        "worker.forward_draft_extend(ExtendInput(wrong, torch.zeros(12).long()))\n"
    )
    said = run("\n".join((imports, snippet, call)), "strict")
    shown = blocks(README, "text")[0].replace("cuda:0", "cpu")
    assert said.endswith("ShapeContractError: " + shown)


REFUSED = re.findall(r"^\| `(.+?)` \| (SHP10[12]) \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_what_the_page_says_is_refused_is_refused(text: str, code: str) -> None:
    with pytest.raises(ContractTextError, match=f"^{code} "):
        parse_shape(text)


def test_the_table_of_axes_holds_only_axes() -> None:
    table = PAGE[PAGE.index("| axis |") : PAGE.index("| refused")]
    axes = re.findall(r"^\| `(.+?)` \|", table, re.MULTILINE)
    assert len(axes) == len(REFUSED) == 5
    for axis in axes:
        assert len(parse_shape(axis).axes) == 1
