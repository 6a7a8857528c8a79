"""STANDALONE: a whole smaller model drafts; it carries no hidden states and is fed none."""

from __future__ import annotations

from engine.proposers.model import ModelProposer


class StandaloneProposer(ModelProposer):
    """The draft reads ids where they stand, the bonus token included."""

    shift = 0
