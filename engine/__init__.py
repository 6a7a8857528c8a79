"""A draft/verify engine for speculative decoding whose every hand-over holds a contract."""
