"""The accepted path of each tree: gathered for the draft, and its slots moved to the front.

B requests   N verify width, root included   D width of the accept table   X width fed to the draft
P rows and M columns of the request table
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPath:
    """What commit hands on: N rows a request for the draft, the path first, padding behind.

    `input_ids` are the emitted tokens and `positions` theirs, 0 on padding; `hidden_states`
    (B*N, X) or None those of the path's nodes, the root's on padding; `select_index` the last row
    of the path; `emitted` (B, D) the tokens again, -1 behind the last; `seq_lens` L_b + A_b.
    """

    input_ids: Int64[Tensor, "bs*num_draft_tokens"]
    positions: Int64[Tensor, "bs*num_draft_tokens"]
    hidden_states: Tensor | None
    select_index: Int64[Tensor, "bs"]
    seq_lens: Int64[Tensor, "bs"]
    emitted: Int64[Tensor, "bs accept_width"]


def keep_path(
    slots_PM: Tensor,
    *,
    req_rows_index: Tensor,
    seq_lens: Tensor,
    slots: Tensor,
    predict: Tensor,
    accept_index: Tensor,
    accept_lens: Tensor,
    hidden_states: Tensor | None,
    shift: int,
) -> KeptPath:
    """Table columns [L_b, L_b + N) hold the path's slots first, the others behind.

    `slots_PM` is the request table, written in place. Everything else is as in VerifyInput and
    VerifyOutput; `shift` is the proposer's.
    """
    requests, width = slots.shape
    index_N = torch.arange(width, device=slots.device)
    path_BN = _fitted(accept_index, width)  # no path is longer than N
    kept_BN = (path_BN[:, None, :] == index_N[:, None]).any(dim=2)
    # Parents stand before children, so ascending node order is path order.
    order_BN = kept_BN.logical_not().int().argsort(dim=1, stable=True)
    columns_BN = seq_lens[:, None] + index_N
    slots_PM[req_rows_index[:, None], columns_BN] = slots.gather(1, order_BN)
    real_BN = index_N < accept_lens[:, None]
    at_BN = path_BN.clamp(min=0)
    emitted_BN = predict.gather(1, at_BN).where(real_BN, 0)
    return KeptPath(
        input_ids=emitted_BN.flatten(),
        positions=(columns_BN + (1 - shift)).where(real_BN, 0).flatten(),
        hidden_states=_gathered(hidden_states, at_BN),
        select_index=width * torch.arange(requests, device=slots.device) + accept_lens - 1,
        seq_lens=seq_lens + accept_lens,
        emitted=_fitted(emitted_BN.where(real_BN, -1), accept_index.shape[1]),
    )


def _fitted(table_BD: Tensor, width: int) -> Tensor:
    """The table cut or padded with -1 to `width` columns."""
    missing = width - table_BD.shape[1]
    if missing <= 0:
        return table_BD[:, :width]
    return torch.nn.functional.pad(table_BD, (0, missing), value=-1)


def _gathered(hidden_BNX: Tensor | None, at_BN: Tensor) -> Tensor | None:
    if hidden_BNX is None:
        return None
    width = hidden_BNX.shape[2]
    return hidden_BNX.gather(1, at_BN[:, :, None].expand(-1, -1, width)).flatten(0, 1)
