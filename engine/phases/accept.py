"""accept: which path of a tree is kept, by how its candidates came about.

B requests   N verify width, root included   V target vocabulary
"""

from collections.abc import Callable

from torch import Tensor

from engine.carriers import VerifyInput
from engine.ops import TreeOps
from engine.sampling import HotVocab, Stream, sampling_law
from engine.sampling.batch import BatchSampling
from engine.tree import Accepted
from shapecheck import Dims

Accept = Callable[[Tensor, VerifyInput, BatchSampling], Accepted]


class AcceptChosen:
    """For candidates that were chosen: the path follows the tokens the target chooses itself."""

    def __init__(self, dims: Dims, ops: TreeOps) -> None:
        self.accept_width = dims["accept_width"]
        self.ops = ops

    def __call__(self, logits_BNV: Tensor, draft: VerifyInput, sampling: BatchSampling) -> Accepted:
        logits_BNV = sampling.penalised(logits_BNV, draft.draft_tokens, draft.tree_mask)
        choice_BN = sampling.choose(
            logits_BNV,
            draft.positions + 1,
            coins=self.ops.coins,
            draw=self.ops.draw,
            argmax=self.ops.argmax,
            truncate=self.ops.truncate,
        )
        return self.ops.accept_greedy(
            draft.draft_tokens, choice_BN, draft.tree_mask, accept_width=self.accept_width
        )


class AcceptDrawn:
    """For candidates that were drawn: rejection sampling against the law they were drawn from."""

    def __init__(self, dims: Dims, vocab: HotVocab, ops: TreeOps) -> None:
        self.accept_width = dims["accept_width"]
        self.coins, self.truncate = ops.coins, ops.truncate
        self.accept = ops.accept_chain if dims["topk"] == 1 else ops.accept_tree
        self.vocab = vocab

    def __call__(self, logits_BNV: Tensor, draft: VerifyInput, sampling: BatchSampling) -> Accepted:
        assert draft.draft_probs is not None, "a drawn tree comes with the law it was drawn from"
        logits_BNV = sampling.penalised(logits_BNV, draft.draft_tokens, draft.tree_mask)
        controls, width = sampling.controls, draft.draft_tokens.shape[1]
        law_BNV = sampling_law(logits_BNV, controls, self.truncate)
        accept_BN = self.coins(controls.seeds, draft.seq_lens, Stream.ACCEPT, lanes=width)
        final_B = self.coins(controls.seeds, draft.seq_lens, Stream.FINAL, lanes=1).squeeze(1)
        return self.accept(
            law_BNV,
            draft.draft_tokens,
            draft.draft_probs,
            self.vocab,
            draft.next_child,
            draft.next_sibling,
            accept_BN,
            final_B,
            accept_width=self.accept_width,
        )
