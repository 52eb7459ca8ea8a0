"""More than one device: products of Dask arrays, and of matrices in files, block by block on many
workers.

    from gemmlab import distributed
    if __name__ == "__main__":                    # in a script: each worker process imports it
        with distributed.cluster() as client:     # a worker process per device of this machine
            c = distributed.matmul(a, b)          # Dask arrays, lazily
            c.to_zarr("c.zarr")                   # now it is multiplied

Dask decides which worker multiplies which blocks, moves them, and repeats what is lost with a
worker. `products` cuts a product into pairs of blocks, `blocks` multiplies a pair, `stored` reads
files, and `workers` starts the processes. Needs the extra `distributed`.
"""

from ..environment import install_command

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    command = install_command("dask", "distributed", "zarr")
    raise ImportError(f"gemmlab.distributed needs Dask ({error}): {command}") from error

from .blocks import BlockError
from .products import choose_blocks, matmul, to_device, to_host
from .workers import RESOURCE, cluster, survey

__all__ = [
    "RESOURCE",
    "BlockError",
    "choose_blocks",
    "cluster",
    "matmul",
    "survey",
    "to_device",
    "to_host",
]
