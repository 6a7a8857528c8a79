"""Stop strings: the same text and the same stop however the stream is cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.scheduler.stop import StopStrings


def stream(stops: list[str], pieces: list[str]) -> tuple[str, str | None]:
    matcher, shown = StopStrings(stops), ""
    for piece in pieces:
        result = matcher.feed(piece)
        shown += result.text
        if result.stopped_by is not None:
            return shown, result.stopped_by
        # Nothing shown may have to be taken back.
        assert not any(stop in shown for stop in stops)
    return shown + matcher.flush(), None


def whole(stops: list[str], text: str) -> tuple[str, str | None]:
    """The first end at which any stop string stands, the longest one there."""
    for end in range(len(text) + 1):
        here = [stop for stop in stops if text[:end].endswith(stop)]
        if here:
            stop = max(here, key=len)
            return text[: end - len(stop)], stop
    return text, None


words = st.text("abc", max_size=12)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.text("abc", min_size=1, max_size=4), max_size=3), st.lists(words, max_size=6))
def test_cutting_changes_nothing(stops, pieces):
    wanted = whole(stops, "".join(pieces))
    assert stream(stops, pieces) == wanted
    assert stream(stops, list("".join(pieces))) == wanted


def test_text_is_shown_as_soon_as_it_cannot_begin_a_stop():
    matcher = StopStrings(["<end>"])
    assert matcher.feed("a<e").text == "a"
    assert matcher.feed("x<").text == "<ex"
    assert matcher.feed("end").text == ""
    result = matcher.feed(">more")
    assert (result.text, result.stopped_by) == ("", "<end>")
    assert matcher.flush() == ""


@pytest.mark.parametrize("stops", [[], ["zz"]])
def test_without_a_match_all_text_comes_through(stops):
    assert stream(stops, ["az", "", "bz"]) == ("azbz", None)
