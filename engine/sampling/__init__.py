"""Sampling: parameters, filters, seeded coins, draft laws and lossless acceptance."""

from engine.sampling.coins import Stream, coins
from engine.sampling.controls import BatchControls
from engine.sampling.draft_law import (
    DraftLaw,
    RootLaw,
    StepLaw,
    TreeLaw,
    choose_children,
    draw_children,
    draw_root,
    draw_step,
)
from engine.sampling.draw import argmax, draw
from engine.sampling.filters import Truncate, sampling_law, truncate
from engine.sampling.hot_vocab import HotVocab
from engine.sampling.logprobs import Logprobs, token_logprobs
from engine.sampling.params import SamplingParams
from engine.sampling.penalties import TokenCounts, penalise
from engine.sampling.rejection import accept_chain, accept_tree

__all__ = [
    "BatchControls",
    "DraftLaw",
    "HotVocab",
    "Logprobs",
    "RootLaw",
    "SamplingParams",
    "StepLaw",
    "Stream",
    "TokenCounts",
    "TreeLaw",
    "Truncate",
    "accept_chain",
    "accept_tree",
    "argmax",
    "choose_children",
    "coins",
    "draw",
    "draw_children",
    "draw_root",
    "draw_step",
    "penalise",
    "sampling_law",
    "token_logprobs",
    "truncate",
]
