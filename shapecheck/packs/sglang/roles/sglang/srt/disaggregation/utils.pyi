# What prefill hands to decode is what the draft loop starts from: the draft's own state.
class MetadataBuffers:
    output_hidden_states: Float[Tensor, "tokens draft_hidden"]
