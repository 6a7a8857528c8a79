"""The judgements: each has a reason, and belongs to a release that is measured."""

from __future__ import annotations

from tests.wild.newest import NEWEST, judgements


def test_every_judgement_is_of_a_newest_release_and_says_why() -> None:
    releases = {release for release, _ in NEWEST.values()}
    for mark, one in judgements().items():
        assert len(mark) == 16, mark
        assert one.release in releases, mark
        assert len(one.reason) > 20, mark
        assert one.finding.split()[1].startswith("SHP"), mark
