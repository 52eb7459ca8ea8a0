"""A child process for kernels that may crash or hang, and what the simulator says about them."""
