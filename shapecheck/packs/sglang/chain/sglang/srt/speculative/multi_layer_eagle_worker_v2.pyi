class MultiLayerEagleDraftWorker:
    req_to_hidden_states_pool: Float[Tensor, "req_rows num_steps-1 target_hidden"]
