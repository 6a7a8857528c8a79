def verify_tree_greedy_func(
    predicts: Int32[Tensor, "bs*num_draft_tokens"],
    candidates: Int[Tensor, "bs num_draft_tokens"],
    target_predict: Int[Tensor, "bs num_draft_tokens"],
): ...
