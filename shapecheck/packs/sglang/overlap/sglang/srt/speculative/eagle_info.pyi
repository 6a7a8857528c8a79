class EagleDraftInput:
    # V2 computes logits for every row of the extend, V1 for the last row of each request.
    num_tokens_for_logprob_per_batch: (
        Annotated[int, dim("topk"), phase("decode")]
        | Annotated[int, dim("1"), phase("draft_extend")]
        | Annotated[int, dim("num_steps+1"), phase("draft_extend_v2")]
    )
