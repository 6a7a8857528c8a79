"""What an engine costs, against what its machine could do."""
