# Both models' logits are compared token by token, so both are over the target's vocabulary.
def _speculative_sampling(
    candidate_logits: Float[Tensor, "bs tokens target_vocab"],
    new_logits: Float[Tensor, "bs tokens target_vocab"],
): ...
