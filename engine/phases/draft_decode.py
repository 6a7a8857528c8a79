"""draft decode: S-1 draft forwards grow a tree below each request's bonus token.

B requests   K branching   R = B*K rows, request-major   S draft depth   N verify width
W slots of earlier steps and this one (K per step)   V draft vocabulary
"""

from collections.abc import Callable

import torch
from torch import Tensor

from engine.attention.base import AttentionBackend, Block
from engine.carriers import BatchRows, DraftState, DraftStep, StepRows, VerifyInput
from engine.kv.table import RequestTable
from engine.models.base import DraftModel
from engine.ops import TreeOps
from engine.proposers.candidates import Candidates
from engine.sampling import HotVocab, RootLaw, StepLaw, TreeLaw
from engine.sampling.batch import BatchSampling
from engine.tree import DraftTree, Frontier, first_level
from shapecheck import Dims, contract


class StepForward:
    """The part of draft decode that a graph replays: one draft forward of B*K rows."""

    def __init__(self, *, draft: DraftModel, attention: AttentionBackend, shift: int) -> None:
        self.draft = draft
        self.attention = attention
        self.shift = shift

    def __call__(self, step: DraftStep) -> StepRows:
        """Logits and recurrent state of every node of the frontier; its KV is in its slot."""
        plan = self.attention.plan_block(
            Block(
                req_rows_B=step.req_rows_index,
                prefix_lens_B=step.seq_lens + (1 - self.shift),
                slots_BR=step.slots,
                tail_slots_BW=step.tail_slots,
                mask_BRW=step.tail_mask,
                max_prefix=step.max_seq_len + (1 - self.shift),
            )
        )
        out = self.draft(
            step.input_ids.flatten(), step.positions.flatten(), step.hidden_states, plan
        )
        return StepRows(logits=self.draft.logits(out.rows_TH), hidden_states=out.recurrent_TR)


class DraftDecode:
    """Chains and trees are one loop: a chain is a tree with K = 1."""

    def __init__(
        self,
        *,
        dims: Dims,
        table: RequestTable,
        forward: Callable[[DraftStep], StepRows],
        shift: int,
        vocab: HotVocab,
        candidates: Candidates,
        ops: TreeOps,
    ) -> None:
        self.dims = dims
        self.table = table
        self.forward = forward
        self.shift = shift
        self.vocab = vocab
        self.candidates = candidates
        self.ops = ops
        # Every step has the tail of the last one, so that one graph serves all of them.
        self.tail = (dims["num_steps"] - 1) * dims["topk"]

    @contract(phase="draft_decode")
    def run(self, state: DraftState, rows: BatchRows, sampling: BatchSampling) -> VerifyInput:
        """The verify tree of each request, its slots and positions included."""
        topk = self.dims["topk"]
        level, frontier = first_level(state.topk_p, self.vocab.target_ids(state.topk_index))
        levels, laws = [level], []
        hidden_RX = _repeated(state.hidden_states, topk)
        seen_BKW = self._nothing_seen(len(level.tokens))
        for step in range(1, self.dims["num_steps"]):
            batch = self._step(frontier, hidden_RX, seen_BKW, rows, step)
            found = self.forward(batch)
            children = self.candidates.step(found.logits, rows.seq_lens, sampling, step=step)
            tokens_RK = self.vocab.target_ids(children.tokens)
            level, frontier = self.ops.next_level(frontier, children.scores, tokens_RK, step=step)
            levels.append(level)
            laws.append(children.law)
            # A child continues its parent's state and sees what its parent saw.
            hidden_RX = _of_parents(found.hidden_states, frontier)
            seen_BKW = batch.tail_mask.flatten(0, 1)[frontier.parent_rows].view(seen_BKW.shape)
        tree = self.ops.build_tree(
            levels,
            state.bonus_tokens,
            rows.seq_lens,
            topk=topk,
            num_draft_tokens=self.dims["num_draft_tokens"],
            drawn=state.draft_probs is not None,
        )
        return self._verified(tree, rows, _tree_law(state.draft_probs, laws, tree.law_columns))

    def _nothing_seen(self, requests: int) -> Tensor:
        size = (requests, self.dims["topk"], self.tail)
        return torch.zeros(size, dtype=torch.bool, device=self.table.slots_PM.device)

    def _step(
        self,
        frontier: Frontier,
        hidden_RX: Tensor | None,
        seen_BKW: Tensor,
        rows: BatchRows,
        step: int,
    ) -> DraftStep:
        topk = self.dims["topk"]
        columns_W = torch.arange(self.tail, device=seen_BKW.device)
        first_B1 = rows.seq_lens[:, None] + (1 - self.shift)
        tail_slots_BW = self.table.columns_of(rows.req_rows_index, first_B1 + columns_W)
        mine = slice((step - 1) * topk, step * topk)
        # Row k writes the k-th slot of its step, and sees itself.
        itself_KW = columns_W == columns_W[mine][:, None]
        return DraftStep(
            input_ids=frontier.tokens,
            positions=(first_B1 + (step - 1)).expand(-1, topk),
            hidden_states=hidden_RX,
            slots=tail_slots_BW[:, mine],
            tail_slots=tail_slots_BW,
            tail_mask=seen_BKW | itself_KW,
            seq_lens=rows.seq_lens,
            req_rows_index=rows.req_rows_index,
            max_seq_len=rows.max_seq_len,
        )

    def _verified(self, tree: DraftTree, rows: BatchRows, law: TreeLaw | None) -> VerifyInput:
        structure = tree.structure
        columns_N = torch.arange(tree.draft_tokens.shape[1], device=rows.seq_lens.device)
        return VerifyInput(
            draft_tokens=tree.draft_tokens,
            tree_mask=structure.tree_mask,
            positions=structure.positions,
            next_child=structure.next_child,
            next_sibling=structure.next_sibling,
            draft_probs=law,
            seq_lens=rows.seq_lens,
            slots=self.table.columns_of(rows.req_rows_index, rows.seq_lens[:, None] + columns_N),
            req_rows_index=rows.req_rows_index,
            max_seq_len=rows.max_seq_len,
        )


def _repeated(hidden_BX: Tensor | None, topk: int) -> Tensor | None:
    return None if hidden_BX is None else hidden_BX.repeat_interleave(topk, dim=0)


def _of_parents(hidden_RX: Tensor | None, frontier: Frontier) -> Tensor | None:
    return None if hidden_RX is None else hidden_RX[frontier.parent_rows]


def _tree_law(
    root: RootLaw | None, steps: list[StepLaw | None], columns_BN: Tensor | None
) -> TreeLaw | None:
    if root is None or columns_BN is None:
        return None
    drawn = [law for law in steps if law is not None]
    return TreeLaw.assemble(root, drawn, columns_BN)
