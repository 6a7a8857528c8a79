"""Constructs that would make a number of a size: shadowed during a trace, and only then."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest
import torch
from torch.nn.modules import normalization

from shapecheck.symbolic import trace

SOURCE = """
def rows(tensor): return len(tensor)
def is_number(value): return isinstance(value, int)
def is_number_or_text(value): return isinstance(value, (str, int | float))
def plain(value): return len(value), isinstance(value, list)
"""


@pytest.fixture
def module():
    made = ModuleType("shapecheck_constructs")
    exec(SOURCE, made.__dict__)
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]


def test_len_and_isinstance_see_the_symbol(module):
    with trace(within=[module.__name__]) as t:
        count = module.rows(t.tensor("bs topk"))
        assert type(count) is torch.SymInt
        assert module.is_number(count)
        assert module.is_number_or_text(count)
        assert module.plain([1, 2]) == (2, True)
    assert t.report().specialised == ()
    assert "len" not in vars(module)
    assert "isinstance" not in vars(module)


def test_a_module_with_its_own_len_keeps_it(module):
    module.len = own = lambda value: 99
    with trace(within=[module.__name__]) as t:
        assert module.rows(t.tensor("bs")) == 99
    assert module.len is own


def test_a_module_imported_while_tracing_is_traced(tmp_path, monkeypatch):
    (tmp_path / "shapecheck_newcomer.py").write_text(SOURCE + "assert isinstance('a', str)\n")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    with trace(within=["shapecheck_newcomer"]) as t:
        made = importlib.import_module("shapecheck_newcomer")
        assert type(made.rows(t.tensor("bs topk"))) is torch.SymInt
        assert made.is_number(t.size("bs"))
    assert not {"len", "isinstance"} & vars(made).keys()
    assert sys.meta_path == finders
    assert not {"len", "isinstance"} & vars(importlib.reload(made)).keys()
    del sys.modules["shapecheck_newcomer"]


def test_the_calling_module_is_always_traced():
    with trace() as t:
        assert type(len(t.tensor("bs topk"))) is torch.SymInt


def test_sizes_are_keys_of_a_dict():
    with trace() as t:
        graphs = {t.size("bs"): "graph", 7: "other"}
        assert graphs[t.size("bs")] == "graph"
        found = t.size("topk") in graphs  # the same number: another size all the same
    assert not found
    with pytest.raises(TypeError):
        hash(t.size("bs"))
    (comparison,) = t.report().comparisons
    assert {comparison.dims.expected, comparison.dims.found} == {"bs", "topk"}


def test_norms_take_a_symbol_as_an_integer():
    before = normalization.numbers
    with trace() as t:
        for norm in (torch.nn.LayerNorm, torch.nn.RMSNorm):
            norm(t.size("target_hidden"))(t.tensor("bs target_hidden"))
    assert normalization.numbers is before
    assert t.report().findings == ()


def test_everything_is_undone_after_an_error(module):
    with pytest.raises(RuntimeError), trace(within=[module.__name__]):
        raise RuntimeError
    assert "len" not in vars(module)
    assert normalization.numbers.__name__ == "numbers"


def test_places_that_need_a_number_are_listed():
    with trace() as t:
        [0] * t.size("num_steps")
        range(t.size("topk"))
    places = [text.split("  ")[1] for text in t.report().specialised]
    assert places == ["num_steps = 6", "topk = 5"]


def test_a_branch_on_data_is_seen_both_ways():
    answers = []
    with trace() as t:
        finished = t.tensor("bs", torch.bool)
        for _ in range(2):
            answers.append(bool(finished.any()))
        kept = t.tensor("bs target_hidden")[finished]
        assert kept.shape[1] is not None
    assert answers == [False, True]
    assert len(t.report().data_hints) == 1


def test_a_branch_that_only_raises_is_not_taken():
    with trace() as t:
        for _ in range(2):
            count = t.tensor("bs", torch.int64).sum().item()
            if count > 3:
                raise AssertionError
            assert count < 99
    assert t.report().findings == ()


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.numpy().shape[0] == 5,
        lambda x: torch.equal(x, x.clone()) in (True, False),
        lambda x: len(x[:, 0].tolist()) == 5,
        lambda x: torch.rand(x.shape, generator=torch.Generator()).shape[0] is not None,
    ],
)
def test_reads_of_memory_get_something(read):
    with trace() as t:
        assert read(t.tensor("bs topk"))
    assert t.report().findings == ()


def test_deepcopy_of_a_tensor():
    import copy

    with trace() as t:
        copied = copy.deepcopy(t.tensor("bs topk"))
        copied + t.tensor("bs topk")
    assert t.report().exit_code == 0
