"""Which proposer runs which algorithm: one line for each."""

from __future__ import annotations

from collections.abc import Mapping

from engine.config import Algorithm
from engine.proposers.base import Proposer
from engine.proposers.eagle import Eagle3Proposer, EagleProposer
from engine.proposers.lookup import NgramProposer
from engine.proposers.plain import PlainProposer
from engine.proposers.standalone import StandaloneProposer

PROPOSERS: Mapping[Algorithm, type[Proposer]] = {
    "none": PlainProposer,
    "ngram": NgramProposer,
    "standalone": StandaloneProposer,
    "eagle": EagleProposer,
    "eagle3": Eagle3Proposer,
}
