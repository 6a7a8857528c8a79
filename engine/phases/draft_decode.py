"""draft decode: S-1 draft forwards grow a tree below each request's bonus token.

B requests   K branching   R = B*K rows, request-major   S draft depth   N verify width
W slots of earlier steps and this one (K per step)   V draft vocabulary
"""

import torch
from torch import Tensor

from engine.attention.base import AttentionBackend, Block
from engine.carriers import BatchRows, DraftState, VerifyInput
from engine.models.base import DraftModel
from engine.proposers.candidates import Candidates
from engine.sampling import HotVocab, RootLaw, StepLaw, TreeLaw
from engine.sampling.batch import BatchSampling
from engine.tree import (
    Frontier,
    SelectedNodes,
    build_structure,
    first_level,
    law_columns,
    next_level,
    select_nodes,
)
from shapecheck import Dims, contract


class DraftDecode:
    """Chains and trees are one loop: a chain is a tree with K = 1."""

    def __init__(
        self,
        *,
        dims: Dims,
        draft: DraftModel,
        attention: AttentionBackend,
        shift: int,
        vocab: HotVocab,
        candidates: Candidates,
    ) -> None:
        self.dims = dims
        self.draft = draft
        self.attention = attention
        self.shift = shift
        self.vocab = vocab
        self.candidates = candidates

    @contract(phase="draft_decode")
    def run(self, state: DraftState, rows: BatchRows, sampling: BatchSampling) -> VerifyInput:
        """The verify tree of each request, its slots and positions included."""
        topk = self.dims["topk"]
        level, frontier = first_level(state.topk_p, self.vocab.target_ids(state.topk_index))
        levels, laws = [level], []
        hidden_RX = _repeated(state.hidden_states, topk)
        # A row sees itself, and what its parent saw.
        seen_BKW = torch.eye(topk, dtype=torch.bool, device=level.tokens.device)
        seen_BKW = seen_BKW.expand(len(level.tokens), topk, topk)
        for step in range(1, self.dims["num_steps"]):
            logits_RV, hidden_RX = self._forward(frontier, hidden_RX, seen_BKW, rows, step)
            children = self.candidates.step(logits_RV, rows.seq_lens, sampling, step=step)
            tokens_RK = self.vocab.target_ids(children.tokens)
            level, frontier = next_level(frontier, children.scores, tokens_RK, step=step)
            levels.append(level)
            laws.append(children.law)
            hidden_RX = None if hidden_RX is None else hidden_RX[frontier.parent_rows]
            seen_BKW = _inherited(seen_BKW, frontier.parent_rows)
        nodes = select_nodes(
            levels, state.bonus_tokens, num_draft_tokens=self.dims["num_draft_tokens"]
        )
        return self._tree(nodes, rows, _tree_law(state.draft_probs, laws, nodes))

    def _forward(
        self,
        frontier: Frontier,
        hidden_RX: Tensor | None,
        seen_BKW: Tensor,
        rows: BatchRows,
        step: int,
    ) -> tuple[Tensor, Tensor | None]:
        topk = frontier.tokens.shape[1]
        first_B1 = rows.seq_lens[:, None] + (1 - self.shift)
        columns_W = torch.arange(step * topk, device=first_B1.device)
        slots_BW = self.attention.table.columns_of(rows.req_rows_index, first_B1 + columns_W)
        plan = self.attention.plan_block(
            Block(
                req_rows_B=rows.req_rows_index,
                prefix_lens_B=rows.seq_lens + (1 - self.shift),
                slots_BR=slots_BW[:, -topk:],
                tail_slots_BW=slots_BW,
                mask_BRW=seen_BKW,
                max_prefix=rows.max_seq_len + (1 - self.shift),
            )
        )
        positions_R = (first_B1 + (step - 1)).expand(-1, topk).flatten()
        out = self.draft(frontier.tokens.flatten(), positions_R, hidden_RX, plan)
        return self.draft.logits(out.rows_TH), out.recurrent_TR

    def _tree(self, nodes: SelectedNodes, rows: BatchRows, law: TreeLaw | None) -> VerifyInput:
        structure = build_structure(
            nodes.parent_list, nodes.top_scores_index, rows.seq_lens, topk=self.dims["topk"]
        )
        columns_N = torch.arange(nodes.draft_tokens.shape[1], device=rows.seq_lens.device)
        return VerifyInput(
            draft_tokens=nodes.draft_tokens,
            tree_mask=structure.tree_mask,
            positions=structure.positions,
            next_child=structure.next_child,
            next_sibling=structure.next_sibling,
            draft_probs=law,
            seq_lens=rows.seq_lens,
            slots=self.attention.table.columns_of(
                rows.req_rows_index, rows.seq_lens[:, None] + columns_N
            ),
            req_rows_index=rows.req_rows_index,
            max_seq_len=rows.max_seq_len,
        )


def _repeated(hidden_BX: Tensor | None, topk: int) -> Tensor | None:
    return None if hidden_BX is None else hidden_BX.repeat_interleave(topk, dim=0)


def _inherited(seen_BKW: Tensor, parent_rows: Tensor) -> Tensor:
    """What the next frontier sees: what its parents saw, and itself among K new slots."""
    requests, topk, width = seen_BKW.shape
    parents_BKW = seen_BKW.reshape(requests * topk, width)[parent_rows]
    itself_KK = torch.eye(topk, dtype=torch.bool, device=seen_BKW.device)
    return torch.cat(
        (parents_BKW.view(requests, topk, width), itself_KK.expand(requests, topk, topk)), dim=2
    )


def _tree_law(
    root: RootLaw | None, steps: list[StepLaw | None], nodes: SelectedNodes
) -> TreeLaw | None:
    if root is None:
        return None
    drawn = [law for law in steps if law is not None]
    return TreeLaw.assemble(root, drawn, law_columns(nodes.parent_list, nodes.top_scores_index))
