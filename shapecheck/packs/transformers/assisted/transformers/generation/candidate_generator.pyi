class AssistantToTargetTranslator:
    target_vocab_size: Annotated[int, dim("target_vocab")]
    def get_target_logits(
        self, assistant_logits: Float[Tensor, "bs tokens draft_vocab"]
    ) -> Float[Tensor, "bs tokens target_vocab"]: ...
