"""The draft tree: growing levels, choosing nodes, its structure, and greedy acceptance."""

from engine.tree.accept import Accepted, accept_greedy
from engine.tree.build import BuiltTree, build_tree
from engine.tree.levels import Frontier, Level, first_level, next_level, rank_scores
from engine.tree.path import KeptPath, keep_path
from engine.tree.select import SelectedNodes, law_columns, select_nodes
from engine.tree.structure import TreeStructure, build_structure, chain_structure

__all__ = [
    "Accepted",
    "BuiltTree",
    "Frontier",
    "KeptPath",
    "Level",
    "SelectedNodes",
    "TreeStructure",
    "accept_greedy",
    "build_structure",
    "build_tree",
    "chain_structure",
    "first_level",
    "keep_path",
    "law_columns",
    "next_level",
    "rank_scores",
    "select_nodes",
]
