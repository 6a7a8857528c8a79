"""`shapecheck pair`: the table, the verdict, JSON and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shapecheck.cli.main import main

CONFIGS = Path(__file__).parents[2] / "data" / "configs"


def pair(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the command; names of shipped configs become paths."""
    real = [str(CONFIGS / arg) if (CONFIGS / arg).is_dir() else arg for arg in args]
    code = main(["pair", *real])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_clean_pair_prints_every_dimension(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = pair(
        capsys, "llama-3-8b", "eagle3-llama-8b", "--algorithm", "eagle3", "--num-steps", "5"
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["name", "value", "owner", "origin"]
    rows = {line.split()[0]: line.split(maxsplit=3)[1:] for line in lines[1:25]}
    assert rows["target_hidden"] == ["4096", "target", "hidden_size in llama-3-8b/config.json"]
    assert rows["extend_hidden"] == ["12288", "target", "num_aux*target_hidden = 3*4096"]
    assert rows["num_draft_tokens"] == ["6", "algorithm", "num_steps+1 = 5+1"]
    assert rows["draft_dtype"] == ["bfloat16", "draft"]
    assert lines[-1].startswith(
        "llama-3-8b/config.json + eagle3-llama-8b/config.json can work as eagle3"
    )


def test_findings_fail_the_command_and_name_the_dimension(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = pair(capsys, "llama-3-8b", "eagle3-llama-70b", "--algorithm", "eagle3")
    assert (code, err) == (1, "")
    assert "SHP201 extend_hidden" in out
    assert out.splitlines()[-1].endswith("cannot work as eagle3 because of target_hidden")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = pair(
        capsys,
        *("llama-3-8b", "eagle3-llama-70b", "--algorithm", "eagle3"),
        *("--output-format", "json"),
    )
    document = json.loads(out)
    assert (code, document["version"]) == (1, 1)
    first = document["findings"][0]
    assert (first["code"], first["name"], first["severity"]) == ("SHP201", "wrong-owner", "error")
    assert (first["primary"]["line"], first["primary"]["column"]) == (17, 3)
    assert first["dims"] == {"expected": "target_hidden", "found": "target_hidden_size"}
    summary = document["summary"]
    assert (summary["tier"], summary["algorithm"], summary["files"]) == ("pair", "eagle3", 2)
    assert summary["dims"]["extend_hidden"] == {
        "value": 12288,
        "owner": "target",
        "origin": "num_aux*target_hidden = 3*4096",
    }
    assert summary["dims"]["draft_vocab"]["value"] == 32000


def test_ngram_takes_no_draft(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = pair(capsys, "llama-3-8b", "--algorithm", "ngram", "--num-draft-tokens", "12")
    assert code == 0
    assert "ngram has no draft model" in out
    assert out.splitlines()[-1] == "llama-3-8b/config.json can work as ngram"
    code, out, err = pair(capsys, "llama-3-8b", "llama-3-1b", "--algorithm", "ngram")
    assert (code, out) == (2, "")
    assert "leave the draft config out" in err


@pytest.mark.parametrize("algorithm", ["none", "mtp"])
def test_a_target_alone(algorithm: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = pair(capsys, "mtp-moe", "--algorithm", algorithm)
    assert code == 0
    assert out.splitlines()[-1] == f"mtp-moe/config.json can work as {algorithm}"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["llama-3-8b", "nosuch", "--algorithm", "eagle"], "SHP903 unreadable-file: draft config"),
        (["llama-3-8b", "--algorithm", "eagle"], "needs a draft"),
        (["llama-3-8b", "llama-3-1b", "--algorithm", "standalone", "--topk", "4"], "SHP204"),
        (["llama-3-8b", "--algorithm", "ngram", "--tp", "0"], "tp is 0"),
    ],
)
def test_input_faults(args: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = pair(capsys, *args)
    assert (code, out) == (2, "")
    assert text in err
    assert "Traceback" not in err
