"""Which proposer runs which algorithm: one line for each, and the only list of their names."""

from __future__ import annotations

from engine.proposers.base import Proposer
from engine.proposers.eagle import Eagle3Proposer, EagleProposer
from engine.proposers.lookup import NgramProposer
from engine.proposers.plain import PlainProposer
from engine.proposers.standalone import StandaloneProposer

PROPOSERS: dict[str, type[Proposer]] = {
    "none": PlainProposer,
    "ngram": NgramProposer,
    "standalone": StandaloneProposer,
    "eagle": EagleProposer,
    "eagle3": Eagle3Proposer,
}
