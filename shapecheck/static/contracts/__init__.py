"""Contracts as the analysis reads them: from annotated code and from packs, by one path."""
