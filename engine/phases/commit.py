"""commit: the accepted path becomes part of each request; the only phase that mutates.

B requests   N verify width, root included   D width of the accept table
"""

from torch import Tensor

from engine.carriers import BatchRows, Emitted, VerifyExtendInput, VerifyInput, VerifyOutput
from engine.kv.table import RequestTable
from engine.ops import TreeOps
from shapecheck import Dims, contract, invariant


class Commit:
    """Reorders the table so that accepted slots follow the committed ones, and moves lengths on.

    A request owns a window of slots behind its last token. Accepted nodes move to the front of
    the window in path order; the slots of the others stay in it, free for the next iteration.
    """

    def __init__(self, *, dims: Dims, table: RequestTable, shift: int, ops: TreeOps) -> None:
        self.dims = dims
        self.table = table
        self.shift = shift
        self.keep_path = ops.keep_path

    @contract(phase="commit")
    def run(
        self, draft: VerifyInput, verified: VerifyOutput, rows: BatchRows
    ) -> tuple[VerifyExtendInput, Emitted]:
        """L_b grows by A_b in `rows`; what the draft has to read is gathered, N rows a request."""
        path = self.keep_path(
            self.table.slots_PM,
            req_rows_index=draft.req_rows_index,
            seq_lens=draft.seq_lens,
            slots=draft.slots,
            predict=verified.predict,
            accept_index=verified.accept_index,
            accept_lens=verified.accept_lens,
            hidden_states=verified.hidden_states,
            shift=self.shift,
        )
        extend = VerifyExtendInput(
            hidden_states=path.hidden_states,
            input_ids=path.input_ids,
            positions=path.positions,
            accept_lens=verified.accept_lens,
            seq_lens=draft.seq_lens,
            req_rows_index=draft.req_rows_index,
            select_index=path.select_index,
            max_seq_len=draft.max_seq_len,
        )
        rows.seq_lens = path.seq_lens
        return extend, Emitted(tokens=path.emitted, lengths=verified.accept_lens)


@invariant(Commit.run)
def lengths_grow_by_the_path(draft: VerifyInput, verified: VerifyOutput, rows: BatchRows) -> Tensor:
    """seq_lens[b] is L_b + A_b when the path has become part of the request."""
    return rows.seq_lens == draft.seq_lens + verified.accept_lens


@invariant(Commit.run)
def path_follows_the_target(draft: VerifyInput, verified: VerifyOutput) -> Tensor:
    """predict[accept_index[b, j-1]] == draft_tokens[accept_index[b, j]] along the path."""
    index_BD = verified.accept_index
    at_BD = index_BD.clamp(min=0)
    said_BD = verified.predict.gather(1, at_BD)[:, :-1]
    taken_BD = draft.draft_tokens.gather(1, at_BD)[:, 1:]
    return (index_BD[:, 1:] < 0) | (said_BD == taken_BD)
