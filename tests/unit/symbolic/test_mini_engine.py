"""The miniature engine: clean as it stands, and every injected bug is seen without any weights."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from shapecheck.diagnostics import Severity
from shapecheck.symbolic import Report, trace

SOURCE = Path(__file__).with_name("mini_engine.py")
NAME = "shapecheck_mini_engine"
TEXT = SOURCE.read_text(encoding="utf-8")

# Short loops: the phases are the same ones.
FEW = {"num_steps": 2, "num_aux": 2}

SETTINGS = [
    pytest.param({}, id="equal"),
    pytest.param({"hints": {"bs": 0}}, id="bs=0"),
    pytest.param({"hints": {"bs": 1}}, id="bs=1"),
    pytest.param({"setting": "draft wider"}, id="draft wider"),
    pytest.param({"setting": "target wider"}, id="target wider"),
]

# name, what the engine says, what the mutant says, the code that must lead
MUTANTS = [
    (
        "idle width of the target",
        'torch.empty((0, dims["recurrent_hidden"])',
        'torch.empty((0, dims["target_hidden"])',
        "SHP301",
    ),
    (
        "idle rank",
        'torch.empty((0, dims["topk"]), dtype=torch.float32)',
        "torch.empty((0,), dtype=torch.float32)",
        "SHP203",
    ),
    (
        "idle index dtype",
        'torch.empty((0, dims["topk"]), dtype=torch.int64)',
        'torch.empty((0, dims["topk"]), dtype=torch.int32)',
        "SHP203",
    ),
    (
        "idle dtype of the target",
        'dims["recurrent_hidden"]), dtype=draft_dtype)',
        'dims["recurrent_hidden"]), dtype=torch.bfloat16)',
        "SHP304",
    ),
    (
        "idle columns from the verify width",
        'torch.empty((0, dims["topk"]), dtype=torch.int64)',
        'torch.empty((0, dims["num_draft_tokens"]), dtype=torch.int64)',
        "SHP303",
    ),
    (
        "fc of the draft's width",
        'nn.Linear(dims["extend_hidden"], hidden)',
        'nn.Linear(dims["num_aux"] * hidden, hidden)',
        "SHP301",
    ),
    (
        "fc without num_aux",
        'nn.Linear(dims["extend_hidden"], hidden)',
        'nn.Linear(dims["target_hidden"], hidden)',
        "SHP301",
    ),
    (
        "graph buffer of the draft's width",
        'torch.zeros((rows, dims["extend_hidden"])',
        'torch.zeros((rows, dims["num_aux"] * dims["draft_hidden"])',
        "SHP301",
    ),
    (
        "graph buffer of the draft's dtype",
        'ExtendBuffers(dims, dims["padded_bs"], target_dtype)',
        'ExtendBuffers(dims, dims["padded_bs"], draft_dtype)',
        "SHP304",
    ),
    (
        "graph buffer without num_aux",
        'torch.zeros((rows, dims["extend_hidden"])',
        'torch.zeros((rows, dims["target_hidden"])',
        "SHP301",
    ),
    (
        "guarded copy",
        "        self.hidden_TH[:rows].copy_(hidden_TH)\n",
        "        if self.wide_TH.shape[1] == hidden_TH.shape[1]:\n"
        "            self.wide_TH[:rows].copy_(hidden_TH)\n",
        "SHP402",
    ),
    (
        "embedding of the draft's vocabulary",
        'self.embed = nn.Embedding(dims["target_vocab"], hidden)\n'
        "        self.attention = Attention(\n            2",
        'self.embed = nn.Embedding(dims["draft_vocab"], hidden)\n'
        "        self.attention = Attention(\n            2",
        "SHP305",
    ),
    (
        "d2t dropped in the loop",
        "mapped = self.to_target_ids(index_TK)",
        "mapped = index_TK",
        "SHP305",
    ),
    (
        "d2t dropped at the start",
        "self.to_target_ids(state.topk_index_BK)",
        "state.topk_index_BK",
        "SHP305",
    ),
    (
        "d2t of the target's size",
        'torch.zeros(dims["draft_vocab"]',
        'torch.zeros(dims["target_vocab"]',
        "SHP305",
    ),
    (
        "d2t applied twice",
        "tokens_BK = self.to_target_ids(state.topk_index_BK)",
        "tokens_BK = self.to_target_ids(self.to_target_ids(state.topk_index_BK))",
        "SHP305",
    ),
    (
        "draft pool with the target's heads",
        'Pool(slots, dims["draft_kv_heads"], dims["draft_head_dim"]',
        'Pool(slots, dims["target_kv_heads"], dims["draft_head_dim"]',
        "SHP301",
    ),
    (
        "draft pool with the target's head_dim",
        'Pool(slots, dims["draft_kv_heads"], dims["draft_head_dim"]',
        'Pool(slots, dims["draft_kv_heads"], dims["target_head_dim"]',
        "SHP301",
    ),
    (
        "draft pool of the target's dtype",
        'dims["draft_head_dim"], draft_dtype)',
        'dims["draft_head_dim"], target_dtype)',
        "SHP304",
    ),
    (
        "draft heads of the target",
        'dims["draft_heads"], dims["draft_kv_heads"]',
        'dims["target_heads"], dims["draft_kv_heads"]',
        "SHP301",
    ),
    (
        "steps for the verify width",
        'predict_BN = logits_TV.argmax(-1).view(bs, self.dims["num_draft_tokens"])',
        'predict_BN = logits_TV.argmax(-1).view(bs, self.dims["num_steps"] + 1)',
        "SHP303",
    ),
    (
        "tree of num_steps+1",
        'width = self.dims["num_draft_tokens"]\n        best',
        'width = self.dims["num_steps"] + 1\n        best',
        "SHP303",
    ),
    ("swapped axes", "p_TK.view(bs, topk, topk)", "p_TK.view(topk, bs, topk)", "SHP303"),
    (
        "missing cast before fc",
        "self.draft.fc(hidden_TH.to(self.draft_dtype))",
        "self.draft.fc(hidden_TH)",
        "SHP304",
    ),
    (
        "recurrent state of the target",
        "return self.head(x_TH).float(), x_TH",
        "return self.head(x_TH).float(), x_TH.new_empty((x_TH.shape[0], self.target_width))",
        "SHP301",
    ),
    (
        "repeat by the verify width",
        "state.hidden_BH.repeat_interleave(topk, dim=0)",
        'state.hidden_BH.repeat_interleave(self.dims["num_draft_tokens"], dim=0)',
        "SHP303",
    ),
    ("rows of the batch for the branches", "self.rows(bs * topk)", "self.rows(bs * bs)", "SHP303"),
    (
        "draft head of the target's vocabulary",
        'nn.Linear(hidden, dims["draft_vocab"])',
        'nn.Linear(hidden, dims["target_vocab"])',
        "SHP305",
    ),
    ("lengths for branches", "torch.full((bs, 1), -1", "torch.full((topk, 1), -1", "SHP303"),
]


def load(path: Path) -> ModuleType:
    """The engine's source as a module, under a name that the trace shadows."""
    module = ModuleType(NAME)
    sys.modules[NAME] = module
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    return module


def traced(path: Path, *, steps: int = 1, hints=None, **settings) -> Report:
    """The report of the whole engine under one setting."""
    module = load(path)
    try:
        with trace(within=[NAME], hints={**FEW, **(hints or {})}, **settings) as t:
            t.run(module.run, t, steps)
    finally:
        del sys.modules[NAME]
    return t.report()


@pytest.mark.parametrize("settings", SETTINGS)
def test_clean_engine_has_no_finding(settings):
    report = traced(SOURCE, steps=2, **settings)
    assert report.stopped is None
    assert report.findings == ()
    assert report.checked_operations > 150
    assert report.exit_code == 0


@pytest.mark.parametrize(("name", "old", "new", "code"), MUTANTS, ids=[m[0] for m in MUTANTS])
def test_injected_bug_is_found(name, old, new, code, tmp_path):
    assert TEXT.count(old) == 1, f"{name}: the engine changed, place the bug again"
    path = tmp_path / "mutant.py"
    path.write_text(TEXT.replace(old, new), encoding="utf-8")
    report = traced(path)
    codes = [finding.code for finding in report.findings if finding.severity is Severity.ERROR]
    assert codes[:1] == [code], report.text()
    assert report.exit_code == 1
