class EagleDraftInput:
    hidden_states: (
        Annotated[Float[Tensor, "tokens draft_hidden"], phase("decode")]
        | Annotated[Float[Tensor, "tokens target_hidden"], phase("draft_extend")]
        | Annotated[Float[Tensor, "tokens 3*target_hidden"], phase("draft_extend")]
    )
    # V2 computes logits for every row of the extend, V1 for the last row of each request.
    num_tokens_for_logprob_per_batch: (
        Annotated[int, dim("topk"), phase("decode")]
        | Annotated[int, dim("1"), phase("draft_extend")]
        | Annotated[int, dim("num_steps+1"), phase("draft_extend_v2")]
    )
