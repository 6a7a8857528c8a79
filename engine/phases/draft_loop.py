"""The draft loop: S-1 draft forwards grow a tree below each request's bonus token.

B requests   K branching   R = B*K rows, request-major   S draft depth   N verify width
W slots of all steps (K per step), of which a row sees its ancestors' and its own
V draft vocabulary
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor

from engine.attention.base import AttentionBackend, Block
from engine.carriers import DraftRoots, DraftStep, DraftTree, DrawnRoots, StepRows
from engine.graphs.buffers import (
    DraftRootsBuffers,
    DrawnRootsBuffers,
    TruncatingRootsBuffers,
)
from engine.graphs.runner import Graphs
from engine.kv.table import RequestTable
from engine.models.base import DraftModel
from engine.ops import TreeOps
from engine.proposers.candidates import Candidates
from engine.sampling import HotVocab, RootLaw, StepLaw, TreeLaw
from engine.sampling.batch import BatchSampling
from engine.tree import BuiltTree, Frontier, Level, first_level
from shapecheck import Dims, contract


class StepForward:
    """One draft forward of B*K rows."""

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


class DraftLoop:
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
        self.ops = ops
        self.forward = forward
        self.shift = shift
        self.vocab = vocab
        self.candidates = candidates
        # Every step has the tail of the last one, so that one kernel serves all of them.
        self.tail = (dims["num_steps"] - 1) * dims["topk"]

    def __call__(
        self, roots: DraftRoots, sampling: BatchSampling, law: RootLaw | None
    ) -> DraftTree:
        """The tree of each request; `law` is the one its first candidates were drawn from."""
        topk = self.dims["topk"]
        level, frontier = first_level(roots.topk_p, self.vocab.target_ids(roots.topk_index))
        levels: list[Level] = [level]
        laws: list[StepLaw | None] = []
        hidden_RX = _repeated(roots.hidden_states, topk)
        seen_BKW = self._nothing_seen(len(level.tokens))
        columns_W = torch.arange(self.tail, device=seen_BKW.device)
        first_B1 = roots.seq_lens[:, None] + (1 - self.shift)
        slots_BW = self.table.columns_of(roots.req_rows_index, first_B1 + columns_W)
        # For all steps at once: row k writes the k-th slot of its step, and sees itself.
        slots_SBK = slots_BW.unflatten(1, (-1, topk)).transpose(0, 1).contiguous()
        itself_SKW = columns_W == columns_W.view(-1, topk, 1)
        depths_S = torch.arange(len(slots_SBK), device=seen_BKW.device)
        positions_SBK = (first_B1 + depths_S[:, None, None]).repeat(1, 1, topk)
        for step in range(1, self.dims["num_steps"]):
            batch = DraftStep(
                input_ids=frontier.tokens,
                positions=positions_SBK[step - 1],
                hidden_states=hidden_RX,
                slots=slots_SBK[step - 1],
                tail_slots=slots_BW,
                tail_mask=seen_BKW | itself_SKW[step - 1],
                seq_lens=roots.seq_lens,
                req_rows_index=roots.req_rows_index,
                max_seq_len=roots.max_seq_len,
            )
            found = self._forward(batch)
            children = self.candidates.step(found.logits, roots.seq_lens, sampling, step=step)
            tokens_RK = self.vocab.target_ids(children.tokens)
            level, frontier = self.ops.next_level(frontier, children.scores, tokens_RK, step=step)
            levels.append(level)
            laws.append(children.law)
            # A child continues its parent's state and sees what its parent saw.
            hidden_RX = _of_parents(found.hidden_states, frontier)
            seen_BKW = batch.tail_mask
            if topk > 1:
                seen_BKW = seen_BKW.flatten(0, 1)[frontier.parent_rows].view(seen_BKW.shape)
        built = self.ops.build_tree(
            levels,
            roots.bonus_tokens,
            roots.seq_lens,
            topk=topk,
            num_draft_tokens=self.dims["num_draft_tokens"],
            drawn=law is not None,
        )
        return self._tree(built, roots, _tree_law(law, laws, built.law_columns))

    @contract(phase="draft_decode")
    def _forward(self, batch: DraftStep) -> StepRows:
        return self.forward(batch)

    def _nothing_seen(self, requests: int) -> Tensor:
        size = (requests, self.dims["topk"], self.tail)
        return torch.zeros(size, dtype=torch.bool, device=self.table.slots_PM.device)

    def _tree(self, built: BuiltTree, roots: DraftRoots, law: TreeLaw | None) -> DraftTree:
        structure = built.structure
        columns_N = torch.arange(built.draft_tokens.shape[1], device=roots.seq_lens.device)
        return DraftTree(
            draft_tokens=built.draft_tokens,
            tree_mask=structure.tree_mask,
            positions=structure.positions,
            next_child=structure.next_child,
            next_sibling=structure.next_sibling,
            draft_probs=law,
            slots=self.table.columns_of(roots.req_rows_index, roots.seq_lens[:, None] + columns_N),
        )


class ChosenLoop:
    """A whole DraftLoop of chosen candidates as one forward, which a graph may replay."""

    def __init__(self, *, dims: Dims, forward: Callable[[DraftRoots], DraftTree]) -> None:
        self.dims = dims
        self.forward = forward

    @classmethod
    def of(cls, loop: DraftLoop, graphs: Graphs) -> Self:
        """`forward` reads no sampling, so that a graph holds all of it."""
        nothing = BatchSampling.idle(graphs.device)

        def forward(roots: DraftRoots) -> DraftTree:
            return loop(roots, nothing, None)

        return cls(dims=loop.dims, forward=graphs.wrap(forward, DraftRootsBuffers))

    @contract(phase="draft_decode")
    def __call__(
        self, roots: DraftRoots, sampling: BatchSampling, law: RootLaw | None
    ) -> DraftTree:
        """The tree of each request; no law, as nothing is drawn."""
        return self.forward(roots)


class DrawnLoop:
    """The same of drawn candidates; a batch in which no request truncates its law has a forward of
    its own, without the passes that takes.
    """

    def __init__(
        self,
        *,
        dims: Dims,
        forward: Callable[[DrawnRoots], DraftTree],
        truncating: Callable[[DrawnRoots], DraftTree],
    ) -> None:
        self.dims = dims
        self.forward = forward
        self.truncating = truncating

    @classmethod
    def of(cls, loop: DraftLoop, graphs: Graphs) -> Self:
        """Two forwards, which differ in what their buffers are asked for."""

        def forward(batch: DrawnRoots) -> DraftTree:
            sampling = BatchSampling(controls=batch.controls, counts=None)
            return loop(batch.roots, sampling, batch.law)

        return cls(
            dims=loop.dims,
            forward=graphs.wrap(forward, DrawnRootsBuffers),
            truncating=graphs.wrap(forward, TruncatingRootsBuffers),
        )

    @contract(phase="draft_decode")
    def __call__(
        self, roots: DraftRoots, sampling: BatchSampling, law: RootLaw | None
    ) -> DraftTree:
        """The tree of each request, with the laws of its nodes."""
        assert law is not None, "drawn candidates come with the law they were drawn from"
        controls = sampling.controls
        forward = self.truncating if controls.truncates else self.forward
        return forward(DrawnRoots(roots=roots, law=law, controls=controls))


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
