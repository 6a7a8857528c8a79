"""The fixture `traced`: a finding or an empty run fails the test that asked for it."""

from __future__ import annotations

import pytest


def test_a_clean_trace_passes(traced):
    with traced() as t:
        joined = t.tensor("bs draft_hidden") + t.tensor("bs draft_hidden")
        assert len(joined) is not None


def test_a_finding_fails_the_test(traced):
    with pytest.raises(pytest.fail.Exception, match="draft_hidden == target_hidden"), traced() as t:
        t.tensor("bs draft_hidden") + t.tensor("bs target_hidden")


def test_an_empty_run_fails_the_test(traced):
    with pytest.raises(pytest.fail.Exception, match="no operation joined"), traced():
        pass


def test_an_error_of_the_test_is_not_hidden(traced):
    with pytest.raises(KeyError), traced():
        raise KeyError("mine")
