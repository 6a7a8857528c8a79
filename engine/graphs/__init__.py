"""Static buffers and the replay of phase forwards on them."""
