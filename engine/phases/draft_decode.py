"""draft decode: each request's state becomes the tree that verify judges."""

from collections.abc import Callable

from engine.carriers import BatchRows, DraftRoots, DraftState, DraftTree, VerifyInput
from engine.sampling import RootLaw
from engine.sampling.batch import BatchSampling
from shapecheck import Dims, contract

Grow = Callable[[DraftRoots, BatchSampling, RootLaw | None], DraftTree]


class DraftDecode:
    """`grow` is a DraftLoop, or a ChosenLoop or DrawnLoop around it."""

    def __init__(self, *, dims: Dims, grow: Grow) -> None:
        self.dims = dims
        self.grow = grow

    @contract(phase="draft_decode")
    def run(self, state: DraftState, rows: BatchRows, sampling: BatchSampling) -> VerifyInput:
        """The verify tree of each request, its slots and positions included."""
        tree = self.grow(DraftRoots.of(state, rows), sampling, state.draft_probs)
        return VerifyInput(
            draft_tokens=tree.draft_tokens,
            tree_mask=tree.tree_mask,
            positions=tree.positions,
            next_child=tree.next_child,
            next_sibling=tree.next_sibling,
            draft_probs=tree.draft_probs,
            seq_lens=rows.seq_lens,
            slots=tree.slots,
            req_rows_index=rows.req_rows_index,
            max_seq_len=rows.max_seq_len,
        )
