class SpecDecodeBaseProposer:
    hidden_states: Float[Tensor, "tokens draft_hidden"]
    token_arange_np: Int32[Tensor, "tokens"]
