"""Key/value memory: who owns which slot, and the pools the slots index."""
