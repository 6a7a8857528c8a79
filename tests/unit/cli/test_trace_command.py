"""`shapecheck trace`: subjects, exit codes, JSON and bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import jsonschema
import pytest

from shapecheck.cli.main import main

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
SUBJECT = """
    import torch
    from jaxtyping import Float
    from torch import Tensor
    from shapecheck import Dims, contract

    def clean(t):
        return torch.cat([t.tensor("bs draft_hidden"), t.tensor("bs draft_hidden")])

    def mixed(t):
        return torch.cat([t.tensor("bs draft_hidden"), t.tensor("bs target_hidden")])

    def vocabularies(t):
        return t.tensor("draft_vocab") + t.tensor("target_vocab")

    def empty(t):
        return 3

    def stops(t):
        raise ValueError("a reason")

    def unclear(a, b):
        return a

    @contract(phase="add")
    def add(a: Float[Tensor, "bs draft_hidden"], b: Float[Tensor, "bs draft_hidden"], dims: Dims):
        return a + b

    class Worker:
        @contract
        def step(self, a: Float[Tensor, "bs topk"], dims: Dims) -> Float[Tensor, "bs topk"]:
            return a

    class Holder:
        @staticmethod
        def inner(t):
            return clean(t)

    not_callable = 3

    def broken(t):
        return add(t.tensor("bs draft_hidden"), t.tensor("bs target_hidden"), t.dims)

    def exits(t):
        raise SystemExit(0)

    def closes(t):
        raise GeneratorExit

    def prints(t):
        print("a line of the traced code")
        return mixed(t)

    async def later(t):
        return clean(t)

    def one_by_one(t):
        yield clean(t)

    @contract
    def passed_on(a: Float[Tensor, "bs draft_hidden"], b: Float[Tensor, "bs target_hidden"],
                  dims: Dims) -> Float[Tensor, "bs draft_hidden"]:
        return b

    unsigned = dict
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """The command, in a folder with the subjects in `subjects.py`."""
    (tmp_path / "trace_subjects.py").write_text(dedent(SUBJECT), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def command(*args: str) -> tuple[int, str, str]:
        code = main(["trace", *args])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("clean", 0),
        ("add", 0),
        ("Holder.inner", 0),
        ("mixed", 1),
        ("empty", 2),
        ("stops", 2),
        ("exits", 2),
        ("closes", 2),
    ],
)
def test_exit_codes(run, name, code):
    found, out, err = run(f"trace_subjects:{name}")
    assert found == code
    assert ("nothing was checked" in err) == (code == 2)
    assert out.endswith("\n")


def test_a_finding_names_the_place_and_both_dimensions(run):
    _, out, _ = run("trace_subjects:mixed")
    first = out.splitlines()[0]
    assert first.startswith("trace_subjects.py:11:12 SHP301 ")
    assert "[bs, draft_hidden]" in first
    assert "[bs, target_hidden]" in first


def test_a_pair_gives_numbers_and_origins(run):
    code, out, _ = run(
        *("trace_subjects:mixed", "--target", str(CONFIGS / "llama-3-8b")),
        *("--draft", str(CONFIGS / "llama-3-1b"), "--algorithm", "standalone"),
        *("--output-format", "json"),
    )
    assert code == 1
    document = json.loads(out)
    assert document["version"] == 1
    (finding,) = document["findings"]
    assert finding["code"] == "SHP301"
    assert "hidden_size in llama-3-8b/config.json" in {note["message"] for note in finding["notes"]}
    assert document["summary"]["settings"][0] == "equal"


def test_an_allowed_equality_is_no_finding(run):
    allow = "target_vocab == draft_vocab: one tokenizer"
    assert run("trace_subjects:vocabularies")[0] == 1
    # Under unequal numbers the addition is refused, and stays a finding.
    code, out, _ = run("trace_subjects:vocabularies", "--allow", allow)
    assert "SHP301" not in out.splitlines()[0] or "refused" in out.splitlines()[0]
    assert code in (0, 1)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["trace_subjects"], "write MODULE:QUALNAME"),
        (["no_such_module:f"], "cannot be imported"),
        (["trace_subjects:nothing"], "has no function nothing"),
        (["trace_subjects:not_callable"], "has no function not_callable"),
        (["trace_subjects:unclear"], "carries a @contract"),
        (["./trace_subjects.py:clean"], "names a file; write its module"),
        (["trace_subjects.py:clean"], "names a file; write its module"),
        (["trace_subjects:later"], "asyncio.run(later(...))"),
        (["trace_subjects:one_by_one"], "for _ in one_by_one(...): pass"),
        (["trace_subjects:unsigned"], "carries a @contract"),
        (["trace_subjects:clean", "--num-steps", "-3"], "--num-steps needs --target"),
        (["trace_subjects:clean", "--topk", "2"], "--topk needs --target"),
        (["trace_subjects:Worker.step"], "`def run(t): Worker(t.dims).step(t.make(...))`"),
        (["trace_subjects:clean", "--allow", "a == b"], "with its reason"),
        (["trace_subjects:clean", "--draft", "x"], "need --target"),
        (["trace_subjects:clean", "--target", "x"], "needs --algorithm"),
    ],
)
def test_bad_input_is_a_message(run, args, said):
    code, out, err = run(*args)
    assert code == 2
    assert said in err
    assert "Traceback" not in out + err


@pytest.mark.parametrize("output_format", ["full", "concise", "json", "github", "sarif"])
def test_every_format_has_the_findings_on_stdout(run, output_format):
    code, out, err = run("trace_subjects:mixed", "--output-format", output_format)
    assert code == 1
    assert "SHP301" in out
    said = out if output_format == "full" else err
    assert "1 finding, 1 operations" in said


@pytest.mark.parametrize("output_format", ["full", "concise", "json", "github", "sarif"])
def test_what_traced_code_prints_is_not_among_the_findings(run, output_format):
    _, wanted, _ = run("trace_subjects:mixed", "--output-format", output_format)
    code, out, err = run("trace_subjects:prints", "--output-format", output_format)
    assert code == 1
    assert "a line of the traced code" in err
    assert "a line of the traced code" not in out
    assert out.splitlines()[0].split()[-1] == wanted.splitlines()[0].split()[-1]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise SystemExit(0)", "(SystemExit: 0)"),
        ("raise ValueError('two\\nlines')", "(ValueError: two)"),
        ("def run(t:", "(SyntaxError: "),
        ("x = '\0'", "code string cannot contain null bytes"),
        ("raise ImportError('a part')", "(a part)"),
    ],
)
def test_a_module_that_cannot_be_imported_is_never_green(run, tmp_path, source, said):
    name = f"unimportable_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    code, out, err = run(f"{name}:run")
    assert (code, out) == (2, "")
    assert said in err
    assert "internal-error" not in err
    assert "correct it until" in err or "run where it is importable" in err


@pytest.mark.parametrize("output_format", ["concise", "github"])
def test_a_clean_trace_prints_nothing_on_stdout(run, output_format):
    code, out, err = run("trace_subjects:clean", "--output-format", output_format)
    assert (code, out) == (0, "")
    assert "0 findings" in err


def _sarif(text: str):
    log = json.loads(text)
    schema = Path(__file__).parents[2] / "data" / "schemas" / "sarif-schema-2.1.0.json"
    jsonschema.Draft4Validator(json.loads(schema.read_bytes())).validate(log)
    (one,) = log["runs"]
    return one


def test_sarif_leads_with_the_consumer_and_relates_the_producer(run):
    _, out, _ = run("trace_subjects:mixed", "--output-format", "sarif")
    (result,) = _sarif(out)["results"]
    assert _place(result["locations"][0]) == ("trace_subjects.py", 11)
    related = {one["message"]["text"]: _place(one) for one in result["relatedLocations"]}
    assert related["target_hidden: made here"] == ("trace_subjects.py", 11)
    sides = {result["properties"]["expected"], result["properties"]["found"]}
    assert sides == {"draft_hidden", "target_hidden"}
    _, out, _ = run("trace_subjects:broken", "--output-format", "sarif")
    (result,) = _sarif(out)["results"]
    assert result["ruleId"] == "SHP201"
    caller, contract = ("trace_subjects.py", 42), ("trace_subjects.py", 25)
    assert _place(result["locations"][0]) == caller
    related = {one["message"]["text"]: _place(one) for one in result["relatedLocations"]}
    assert related["contract: add"] == contract


def test_sarif_of_a_run_that_showed_nothing_is_no_success(run):
    code, out, _ = run("trace_subjects:stops", "--output-format", "sarif")
    (invocation,) = _sarif(out)["invocations"]
    assert code == 2
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)
    assert "a reason" in out


def test_a_contract_at_level_off_is_held(run):
    code, out, _ = run("trace_subjects:broken", "--output-format", "json")
    (finding,) = json.loads(out)["findings"]
    assert code == 1
    assert finding["crossing"] == {"where": "add", "field": "argument b", "phase": "add"}


def test_a_contract_that_no_traced_line_calls_is_found_where_it_stands(tmp_path):
    (tmp_path / "subjects.py").write_text(dedent(SUBJECT), encoding="utf-8")
    command = [sys.executable, "-m", "shapecheck", "trace", "subjects:passed_on"]
    done = subprocess.run(
        [*command, "--output-format", "concise"], cwd=tmp_path, capture_output=True, text=True
    )
    lines = dedent(SUBJECT).splitlines()
    stands = next(number for number, line in enumerate(lines, start=1) if "passed_on" in line)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(f"subjects.py:{stands - 1}:1 SHP201 passed_on, return")


def _place(location):
    physical = location["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]
