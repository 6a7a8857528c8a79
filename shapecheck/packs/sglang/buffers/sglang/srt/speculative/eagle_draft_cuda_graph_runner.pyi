class EagleDraftInputBuffers:
    hidden_states: Float[Tensor, "tokens draft_hidden"]
