class EagleDraftInput:
    hidden_states: (
        Annotated[Float[Tensor, "tokens draft_hidden"], phase("decode")]
        | Annotated[Float[Tensor, "tokens target_hidden"], phase("draft_extend")]
        | Annotated[Float[Tensor, "tokens 3*target_hidden"], phase("draft_extend")]
    )
