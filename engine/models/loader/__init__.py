"""Checkpoints: safetensors folders and GGUF files, read without ever unpickling."""
