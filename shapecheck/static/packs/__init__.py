"""Packs: contracts for code that somebody else owns, read as text and never imported."""
