"""Is a kernel right, how fast is it, and what was recorded.

`timing` checks and times a kernel, `comparison` times two in turns, `sweeps` varies a parameter,
`peaks` measures a device, and `tuned` the candidates of `matmul`. `records` has the results and the
rows of ``results/``; `landscape` and `rungs` group these rows.
"""
