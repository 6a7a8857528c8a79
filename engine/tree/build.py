"""Build of the verify tree: which candidates are verified, and how they hang together.

B requests   N verify width, root included   K branching
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from jaxtyping import Int64
from torch import Tensor

from engine.tree.levels import Level
from engine.tree.select import law_columns, select_nodes
from engine.tree.structure import TreeStructure, build_structure
from shapecheck import carrier, contract, ids, indexes


@carrier
@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltTree:
    """The verified nodes of each request and their links.

    `law_columns` (B, N) i64 finds, in the laws of all draft steps side by side, the one that a
    node's children were drawn from; None for children that were chosen.
    """

    draft_tokens: Annotated[Int64[Tensor, "bs num_draft_tokens"], ids("target")]
    structure: TreeStructure
    law_columns: Annotated[Int64[Tensor, "bs num_draft_tokens"], indexes("draft_tail+1")] | None


@contract
def build_tree(
    levels: Sequence[Level],
    bonus_tokens: Annotated[Int64[Tensor, "bs"], ids("target")],
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")],
    *,
    topk: int,
    num_draft_tokens: int,
    drawn: bool,
) -> BuiltTree:
    """The N-1 best candidates of all levels behind the bonus token, which stands at `seq_lens`.

    Raises EngineError when the levels hold fewer than N-1 candidates.
    """
    nodes = select_nodes(levels, bonus_tokens, num_draft_tokens=num_draft_tokens)
    parents, index = nodes.parent_list, nodes.top_scores_index
    return BuiltTree(
        draft_tokens=nodes.draft_tokens,
        structure=build_structure(parents, index, seq_lens, topk=topk),
        law_columns=law_columns(parents, index) if drawn else None,
    )
