"""The numbers behind the symbols: equal across owners, apart within one."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapecheck import Dims
from shapecheck.errors import ShapecheckError
from shapecheck.symbolic.hints import Setting, plan

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
SIZES = ("hidden", "vocab", "heads", "kv_heads", "head_dim", "ffn")


@pytest.fixture(scope="module")
def eagle3() -> Dims:
    return Dims.from_configs(
        CONFIGS / "llama-3-8b", CONFIGS / "eagle3-llama-8b", algorithm="eagle3", num_steps=3
    )


def test_equal_numbers_for_both_models_and_for_rows_and_branches():
    numbers = plan(None).numbers
    assert all(numbers[f"target_{size}"] == numbers[f"draft_{size}"] for size in SIZES)
    assert numbers["bs"] == numbers["topk"] == numbers["num_draft_tokens"]
    assert numbers["num_steps"] + 1 != numbers["num_draft_tokens"]


def test_numbers_within_a_model_are_apart():
    numbers = plan(None).numbers
    of_one = [numbers[f"target_{size}"] for size in SIZES]
    assert len(set(of_one)) == len(of_one)


@pytest.mark.parametrize(("setting", "sign"), [("draft wider", -1), ("target wider", 1)])
def test_unequal_numbers(setting, sign):
    numbers = plan(None, Setting(setting)).numbers
    assert sign * (numbers["target_hidden"] - numbers["draft_hidden"]) > 0
    assert numbers["target_hidden"] == numbers["target_heads"] * numbers["target_head_dim"]
    rows = [numbers[name] for name in ("bs", "topk", "num_draft_tokens", "padded_bs", "tokens")]
    assert len(set(rows)) == len(rows)
    assert numbers["num_steps"] + 1 not in rows


def test_a_real_pair_gives_its_numbers_and_formulas(eagle3):
    made = plan(eagle3)
    assert made.numbers["target_hidden"] == made.numbers["draft_hidden"] == 4096
    assert made.formulas["extend_hidden"] == "num_aux*target_hidden"
    assert made.formulas["recurrent_hidden"] == "draft_hidden"
    # A chain: the width follows from the depth, and the branching is no symbol.
    assert made.formulas["num_draft_tokens"] == "num_steps+1"
    assert not made.is_symbol("topk")


def test_rows_never_have_the_number_of_a_head_count(eagle3):
    numbers = plan(eagle3).numbers
    model = {numbers[f"target_{size}"] for size in SIZES}
    assert model.isdisjoint({numbers["bs"], numbers["num_draft_tokens"], numbers["tokens"]})


def test_what_a_pair_lacks_has_no_number():
    dims = Dims.from_configs(CONFIGS / "llama-3-8b", algorithm="ngram", num_steps=3)
    made = plan(dims)
    assert "draft_hidden" not in made.numbers
    assert "extend_hidden" not in made.numbers


def test_overrides_replace_numbers_and_formulas():
    made = plan(None, overrides={"bs": 0, "extend_hidden": 77})
    assert made.numbers["bs"] == 0
    assert not made.is_symbol("bs")
    assert made.is_symbol("extend_hidden")


def test_an_override_outside_the_vocabulary_is_refused():
    with pytest.raises(ShapecheckError, match="'bz': not in the vocabulary"):
        plan(None, overrides={"bz": 1})


def test_layers_are_loops_of_two():
    made = plan(None)
    assert made.numbers["target_layers"] == 2
    assert not made.is_symbol("target_layers")
