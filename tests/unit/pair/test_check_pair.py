"""Which pairs can work, and which named dimension stands against those that cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapecheck.diagnostics import Diagnostic, Severity
from shapecheck.diagnostics.full import render_full
from shapecheck.dims.configs import read_pair

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
TARGET: dict[str, object] = {
    "hidden_size": 64,
    "vocab_size": 256,
    "num_attention_heads": 4,
    "num_hidden_layers": 8,
    "intermediate_size": 128,
    "dtype": "bfloat16",
    "max_position_embeddings": 512,
}
HEAD: dict[str, object] = {**TARGET, "num_hidden_layers": 1}
HEAD3: dict[str, object] = {
    **HEAD,
    "architectures": ["LlamaForCausalLMEagle3"],
    "draft_vocab_size": 100,
}
MTP: dict[str, object] = {**TARGET, "num_nextn_predict_layers": 1}


def findings(
    target: dict[str, object], draft: dict[str, object] | None, algorithm: str, **arguments: int
) -> list[Diagnostic]:
    pair = read_pair(target, draft, algorithm=algorithm, **{"num_steps": 3, **arguments})
    return pair.findings()


CLEAN = [
    (TARGET, TARGET, "standalone", {}),
    (TARGET, {**TARGET, "hidden_size": 32}, "standalone", {"tp": 2}),
    (TARGET, HEAD, "eagle", {}),
    (TARGET, {**HEAD, "hidden_size": 32, "target_hidden_size": 64}, "eagle", {}),
    (TARGET, HEAD3, "eagle3", {"topk": 4, "num_draft_tokens": 16}),
    (TARGET, {**HEAD3, "hidden_size": 32, "target_hidden_size": 64}, "eagle3", {}),
    (TARGET, {**HEAD3, "eagle_aux_hidden_state_layer_ids": [1, 8]}, "eagle3", {"num_aux": 2}),
    (MTP, None, "mtp", {}),
    (TARGET, MTP, "mtp", {}),
    (TARGET, None, "ngram", {"tp": 4}),
    ({**TARGET, "num_key_value_heads": 2}, None, "ngram", {"tp": 4}),
    (TARGET, {**TARGET, "num_attention_heads": 1}, "standalone", {"tp": 4, "draft_tp": 1}),
]


@pytest.mark.parametrize(("target", "draft", "algorithm", "arguments"), CLEAN)
def test_clean(
    target: dict[str, object],
    draft: dict[str, object] | None,
    algorithm: str,
    arguments: dict[str, int],
) -> None:
    assert findings(target, draft, algorithm, **arguments) == []


WIDE = {**HEAD, "hidden_size": 96}
FOUND = [
    ("eagle width", TARGET, WIDE, "eagle", {}, "SHP201", "target_hidden", "of 96, "),
    (
        "eagle3 of another target",
        TARGET,
        {**HEAD3, "target_hidden_size": 96},
        "eagle3",
        {},
        "SHP201",
        "target_hidden",
        "of 96, target_hidden is 64",
    ),
    ("mtp width", TARGET, {**MTP, "hidden_size": 32}, "mtp", {}, "SHP201", "target_hidden", "32"),
    ("mtp without layers", TARGET, TARGET, "mtp", {}, "SHP204", None, "without MTP layers"),
    (
        "mtp layers left out",
        TARGET,
        {**MTP, "num_nextn_predict_layers": 0},
        "mtp",
        {},
        "SHP204",
        None,
        "without MTP layers",
    ),
    ("whole model as head", TARGET, TARGET, "eagle", {}, "SHP204", None, "a whole model of 8"),
    ("eagle3 head as eagle", TARGET, HEAD3, "eagle", {}, "SHP204", None, "an EAGLE-3 head"),
    (
        "eagle head as eagle3",
        TARGET,
        {**HEAD, "architectures": ["LlamaForCausalLMEagle"], "draft_vocab_size": 100},
        "eagle3",
        {},
        "SHP204",
        None,
        "an EAGLE-1 head",
    ),
    ("head alone", TARGET, HEAD3, "standalone", {}, "SHP204", None, "not a model that runs alone"),
    (
        "num_aux against the head",
        TARGET,
        {**HEAD3, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 4, 6]}},
        "eagle3",
        {"num_aux": 2},
        "SHP204",
        "num_aux",
        "reads 3 target layers, num_aux is 2",
    ),
    (
        "aux layer beyond the target",
        TARGET,
        {**HEAD3, "eagle_aux_hidden_state_layer_ids": [1, 4, 9]},
        "eagle3",
        {},
        "SHP204",
        "target_layers",
        "reads target layer 9, target_layers is 8",
    ),
    (
        "another tokenizer",
        TARGET,
        {**TARGET, "vocab_size": 9000},
        "standalone",
        {},
        "SHP305",
        "target_vocab",
        "embeds 9000 token ids",
    ),
    (
        "head of another vocabulary",
        TARGET,
        {**HEAD, "vocab_size": 255},
        "eagle",
        {},
        "SHP305",
        "target_vocab",
        "target_vocab is 256",
    ),
    (
        "head scores more than there is",
        TARGET,
        {**HEAD3, "draft_vocab_size": 300},
        "eagle3",
        {},
        "SHP305",
        "target_vocab",
        "scores 300 ids",
    ),
    (
        "topk beyond the head",
        TARGET,
        {**HEAD3, "draft_vocab_size": 3},
        "eagle3",
        {"topk": 4, "num_draft_tokens": 9},
        "SHP204",
        "draft_vocab",
        "4 candidates",
    ),
    ("heads over tp", TARGET, None, "ngram", {"tp": 3}, "SHP204", "target_heads", "4 attention"),
    (
        "kv heads over tp",
        {**TARGET, "num_attention_heads": 24, "num_key_value_heads": 6, "head_dim": 8},
        None,
        "ngram",
        {"tp": 4},
        "SHP204",
        "target_kv_heads",
        "6 key/value heads",
    ),
    (
        "ffn over tp",
        {**TARGET, "intermediate_size": 127},
        None,
        "ngram",
        {"tp": 2},
        "SHP204",
        "target_ffn",
        "127 MLP columns",
    ),
    (
        "draft heads over tp",
        TARGET,
        {**TARGET, "num_attention_heads": 1},
        "standalone",
        {"tp": 2},
        "SHP204",
        "draft_heads",
        "do not divide among tp=2",
    ),
]


@pytest.mark.parametrize(
    ("target", "draft", "algorithm", "arguments", "code", "name", "text"),
    [case[1:] for case in FOUND],
    ids=[case[0] for case in FOUND],
)
def test_error(
    target: dict[str, object],
    draft: dict[str, object] | None,
    algorithm: str,
    arguments: dict[str, int],
    code: str,
    name: str | None,
    text: str,
) -> None:
    first = findings(target, draft, algorithm, **arguments)[0]
    assert first.severity is Severity.ERROR
    assert (first.code, first.dims and first.dims.expected) == (code, name)
    assert text in first.message
    assert first.notes[-1].label == "remedy"


HINTS = [
    ({**TARGET, "vocab_size": 250}, "standalone", "SHP305", Severity.WARNING),
    ({**HEAD3, "draft_vocab_size": None}, "eagle3", "SHP305", Severity.WARNING),
    ({**HEAD3, "max_position_embeddings": 128}, "eagle3", "SHP204", Severity.NOTE),
    ({**TARGET, "dtype": "float16"}, "standalone", "SHP304", Severity.NOTE),
]


@pytest.mark.parametrize(("draft", "algorithm", "code", "severity"), HINTS)
def test_hint(draft: dict[str, object], algorithm: str, code: str, severity: Severity) -> None:
    assert [(f.code, f.severity) for f in findings(TARGET, draft, algorithm)] == [(code, severity)]


def test_errors_come_first() -> None:
    draft = {**HEAD3, "dtype": "float16", "max_position_embeddings": 8, "hidden_size": 96}
    severities = [finding.severity for finding in findings(TARGET, draft, "eagle3")]
    assert severities == [Severity.ERROR, Severity.NOTE, Severity.NOTE]


def test_the_text_names_both_numbers_and_both_places() -> None:
    pair = read_pair(
        CONFIGS / "llama-3-8b", CONFIGS / "eagle3-llama-70b", algorithm="eagle3", num_steps=3
    )
    path = CONFIGS / "eagle3-llama-70b" / "config.json"
    assert render_full(pair.findings()[0]) == "\n".join(
        [
            f"{path}:17:3 SHP201 extend_hidden: the head reads target hidden states of 8192, "
            "target_hidden is 4096",
            "  expected        target_hidden = 4096 (hidden_size in llama-3-8b/config.json)",
            "  found           8192 (target_hidden_size in eagle3-llama-70b/config.json)",
            "  the head was trained for another target",
            "  remedy          use the head that was trained for this target",
        ]
    )


def test_sizes_that_do_not_divide_stay_in_the_table_with_the_reason() -> None:
    dims = read_pair(TARGET, algorithm="ngram", num_steps=1, tp=3).dims()
    assert dims.get("target_heads") is None
    assert dims.origin("target_heads") == (
        "4 heads do not divide among tp=3 (num_attention_heads in the target config)"
    )
