"""Continuous batching: who is admitted, what runs next, and when a request is done."""
