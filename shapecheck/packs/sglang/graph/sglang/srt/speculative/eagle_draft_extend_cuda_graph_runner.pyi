class EAGLEDraftExtendCudaGraphRunner:
    hidden_states: Float[Tensor, "tokens target_hidden"] | Float[Tensor, "tokens 3*target_hidden"]
