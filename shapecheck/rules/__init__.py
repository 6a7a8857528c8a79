"""The rules: one module each, judging what the static tier observed."""
