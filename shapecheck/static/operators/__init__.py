"""Operators: a table of torch names, and the shape functions that it names."""
