"""engine.kernels: Triton kernels of the hot phases, each beside the torch code that defines it."""
