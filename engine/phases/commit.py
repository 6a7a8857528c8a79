"""commit: the accepted path becomes part of each request; the only phase that mutates.

B requests   N verify width, root included   D width of the accept table   X width fed to the draft
"""

import torch
from torch import Tensor

from engine.carriers import BatchRows, Emitted, VerifyExtendInput, VerifyInput, VerifyOutput
from engine.kv.table import RequestTable
from shapecheck import Dims, contract, invariant


class Commit:
    """Reorders the table so that accepted slots follow the committed ones, and moves lengths on.

    A request owns a window of slots behind its last token. Accepted nodes move to the front of
    the window in path order; the slots of the others stay in it, free for the next iteration.
    """

    def __init__(self, *, dims: Dims, table: RequestTable, shift: int) -> None:
        self.dims = dims
        self.table = table
        self.shift = shift

    @contract(phase="commit")
    def run(
        self, draft: VerifyInput, verified: VerifyOutput, rows: BatchRows
    ) -> tuple[VerifyExtendInput, Emitted]:
        """L_b grows by A_b in `rows`; what the draft has to read is gathered, N rows a request."""
        requests, width = draft.draft_tokens.shape
        device = draft.draft_tokens.device
        index_N = torch.arange(width, device=device)
        path_BN = _fitted(verified.accept_index, width)  # no path is longer than N
        self._keep_path(draft, path_BN, index_N)

        lens_B = verified.accept_lens
        real_BN = index_N < lens_B[:, None]
        at_BN = path_BN.clamp(min=0)
        emitted_BN = verified.predict.gather(1, at_BN).where(real_BN, 0)
        first_B1 = draft.seq_lens[:, None] + (1 - self.shift)
        extend = VerifyExtendInput(
            hidden_states=_gathered(verified.hidden_states, at_BN),
            input_ids=emitted_BN.flatten(),
            positions=(first_B1 + index_N).where(real_BN, 0).flatten(),
            accept_lens=lens_B,
            seq_lens=draft.seq_lens,
            req_rows_index=draft.req_rows_index,
            select_index=width * torch.arange(requests, device=device) + lens_B - 1,
            max_seq_len=draft.max_seq_len,
        )
        rows.seq_lens = draft.seq_lens + lens_B
        emitted_BD = _fitted(emitted_BN.where(real_BN, -1), verified.accept_index.shape[1])
        return extend, Emitted(tokens=emitted_BD, lengths=lens_B)

    def _keep_path(self, draft: VerifyInput, path_BN: Tensor, index_N: Tensor) -> None:
        """Table columns [L_b, L_b + N) hold the path's slots first, the others behind."""
        kept_BN = (path_BN[:, None, :] == index_N[:, None]).any(dim=2)
        # Parents stand before children, so ascending node order is path order.
        order_BN = kept_BN.logical_not().int().argsort(dim=1, stable=True)
        self.table.assign(
            draft.req_rows_index, draft.seq_lens[:, None] + index_N, draft.slots.gather(1, order_BN)
        )


@invariant(Commit.run)
def path_follows_the_target(draft: VerifyInput, verified: VerifyOutput) -> Tensor:
    """predict[accept_index[b, j-1]] == draft_tokens[accept_index[b, j]] along the path."""
    index_BD = verified.accept_index
    at_BD = index_BD.clamp(min=0)
    said_BD = verified.predict.gather(1, at_BD)[:, :-1]
    taken_BD = draft.draft_tokens.gather(1, at_BD)[:, 1:]
    return (index_BD[:, 1:] < 0) | (said_BD == taken_BD)


def _fitted(table_BD: Tensor, width: int) -> Tensor:
    """The table cut or padded with -1 to `width` columns."""
    missing = width - table_BD.shape[1]
    if missing <= 0:
        return table_BD[:, :width]
    return torch.nn.functional.pad(table_BD, (0, missing), value=-1)


def _gathered(hidden_BNX: Tensor | None, at_BN: Tensor) -> Tensor | None:
    """(B*N, X) the hidden states of the path's nodes; rows behind it repeat the root's."""
    if hidden_BNX is None:
        return None
    width = hidden_BNX.shape[2]
    return hidden_BNX.gather(1, at_BN[:, :, None].expand(-1, -1, width)).flatten(0, 1)
