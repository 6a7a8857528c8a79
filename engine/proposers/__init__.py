"""Proposers: where the tokens that the target verifies come from, one file each."""
