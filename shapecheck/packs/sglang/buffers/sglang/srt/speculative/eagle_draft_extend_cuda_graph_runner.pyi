class EagleDraftExtendInputBuffers:
    hidden_states: Float[Tensor, "tokens target_hidden"] | Float[Tensor, "tokens 3*target_hidden"]
    next_token_logits_buffer: Float[Tensor, "tokens draft_vocab"]
