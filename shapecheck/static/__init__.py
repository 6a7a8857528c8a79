"""The static tier: whole-program owner analysis of source that is never imported or executed."""
