"""Attention over a paged KV pool: one interface, one backend per file."""
