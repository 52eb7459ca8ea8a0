"""The processes that multiply: Dask workers, one per device, each with a resource.

Dask trusts whoever can connect: a client, and every worker of a cluster, may send code to the
others. Everything here therefore listens on loopback unless its user names another address.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import Client, Nanny, Scheduler, Security, SpecCluster
from distributed.system import MEMORY_LIMIT

from ..opencl.devices import Device, default_device, devices, find_device
from .blocks import has_own_memory

#: What each worker has one of: ``client.compute(c, resources={RESOURCE: 1})`` keeps a product on
#: these workers in a cluster with others. (Dask loses annotations where it fuses tasks: its issues
#: 7036 and 10325.)
RESOURCE = "OPENCL"

LOOPBACK = "127.0.0.1"

#: Of Dask's HTTP servers: loopback, and any free port.
HTTP_ADDRESS = f"{LOOPBACK}:0"


def select(chosen: Sequence[Device | int | str] | None = None) -> list[Device]:
    """Return the devices to start workers for: the chosen ones, or all GPUs, or the preferred
    device, because the OpenCL runtimes of a CPU share its cores. Raises NoDeviceError, and
    ValueError for anything but a list of devices.
    """
    if chosen is None:
        return [d for d in devices() if d.kind == "GPU"] or [default_device()]
    if isinstance(chosen, str) or not isinstance(chosen, Sequence) or not chosen:
        raise ValueError(f"devices must be a list of one or more, such as [0, 1], not {chosen!r}")
    return [find_device(d) for d in chosen]


def options(
    used: Sequence[Device], memory_bytes: float | None, **shared: Any
) -> list[dict[str, Any]]:
    """Return the arguments of a `distributed.Nanny` per device; a device listed twice gets two
    workers, each with `memory_bytes`, by default an equal part of all memory.
    """
    shared |= {
        "memory_limit": int(memory_bytes or MEMORY_LIMIT / len(used)),
        "dashboard_address": HTTP_ADDRESS,
        "resources": {RESOURCE: 1},
        "silence_logs": logging.CRITICAL,
    }
    # a GPU's worker copies a block back and writes it while it computes the next one
    threads = {d: 2 if has_own_memory(d) else 1 for d in used}
    return [
        {"nthreads": threads[d], "env": {"GEMMLAB_DEVICE": str(d.index)}, **shared} for d in used
    ]


def private_folder() -> TemporaryDirectory[str]:
    """Make a temporary folder for this user alone, for the blocks that workers put on disk.

    Dask's default, /tmp/dask-scratch-space, may belong to another user, who could exchange the
    pickled blocks in it, or add modules: Dask prepends the folder to ``sys.path``.
    """
    where = dask.config.get("temporary-directory", None)
    return TemporaryDirectory(prefix="gemmlab-dask-", dir=where, ignore_cleanup_errors=True)


#: Dask gives up a worker that has been away for so long. Its default, 15 s, may pass before a busy
#: machine has started the worker again.
RESTART = {"distributed.deploy.lost-worker-timeout": "10 minutes"}


def _importing_the_script() -> bool:
    """Whether this is a worker process that is still importing the script that started it, under
    the name ``__mp_main__``: multiprocessing makes it the main module afterwards.
    """
    main = sys.modules["__main__"]
    is_child = multiprocessing.current_process().name != "MainProcess"
    return is_child and sys.modules.get("__mp_main__", main) is not main


@contextmanager
def cluster(
    devices: Sequence[Device | int | str] | None = None,
    *,
    memory_bytes: float | None = None,
    dashboard: bool = True,
    security: Security | None = None,
) -> Iterator[Client]:
    """Run a scheduler and a worker process per device of this machine, during the block.

    All of them listen on loopback: other machines cannot connect, but other users of this machine
    can, and then run code as you; `security` keeps them out. A script calls this function under
    ``if __name__ == "__main__":``, because each worker process imports the script.

    Args:
        devices: each a Device, an index or part of a name; one listed twice gets two workers. By
            default all GPUs, or else the preferred device.
        memory_bytes: host memory of each worker; by default an equal part of all memory. A worker
            that needs more puts blocks on disk, and is restarted if that does not help.
        dashboard: whether to serve Dask's dashboard, at ``client.dashboard_link``; it needs the
            package bokeh.
        security: certificates for TLS, such as ``dask.distributed.Security.temporary()``.

    Yields:
        A `distributed.Client`: what is computed within the block runs on these workers.

    Raises:
        NoDeviceError: if there is no device, or none of that name.
        RuntimeError: if the workers end while starting, as in a script without the guard above.
    """
    if _importing_the_script():
        sys.exit(1)  # the process that started this one reports it
    used = select(devices)
    with private_folder() as folder, dask.config.set(RESTART):
        shared = {"host": LOOPBACK, "local_directory": folder, "security": security}
        workers = {
            number: {"cls": Nanny, "options": nanny}
            for number, nanny in enumerate(options(used, memory_bytes, **shared))
        }
        served = {"dashboard": dashboard, "dashboard_address": HTTP_ADDRESS, **shared}
        scheduler = {"cls": Scheduler, "options": served}
        quiet = {"name": "gemmlab", "silence_logs": logging.ERROR}
        try:
            processes = SpecCluster(workers, scheduler, security=security, **quiet)
        except RuntimeError as error:
            raise RuntimeError(
                f"the worker processes do not start ({error.__cause__ or error}); in a script, "
                'call cluster() under `if __name__ == "__main__":`, because each worker imports it'
            ) from None
        with processes, Client(processes) as client:
            client.wait_for_workers(len(used))
            yield client


def survey(client: Client) -> dict[str, dict[str, Any]]:
    """Return the device of each worker by its address: name, kind, memory in bytes, process ID."""
    return client.run(_describe_worker)


def _describe_worker() -> dict[str, Any]:
    d = default_device()
    return {"device": str(d), "kind": d.kind, "memory_bytes": d.memory, "process": os.getpid()}


def serve(
    address: str, chosen: Sequence[Device | int | str] | None = None, *, host: str = LOOPBACK
) -> None:
    """Run workers for this machine's devices and another machine's scheduler, until they end.

    Dask's configuration may name certificates for TLS (``distributed.comm.tls``).

    Args:
        address: of the scheduler, such as "tcp://10.0.0.1:8786" or "10.0.0.1:8786".
        chosen: as `devices` of `cluster`.
        host: the address or name of this machine on which the workers listen. Whoever can connect
            to it runs code as this user, which a line on stderr says.

    Raises:
        NoDeviceError: if there is no device, or none of that name.
        ValueError: if `host` is loopback, and the scheduler's address is not.
        ConnectionError: if no scheduler answers, or `host` is no address of this machine.
    """
    if "://" not in address:
        address = f"{'tls' if Security().require_encryption else 'tcp'}://{address}"
    if not _is_loopback(host):
        trusted = "with a certificate" if address.startswith("tls") else "who can connect"
        warning = f"workers listen on {host}: anybody {trusted} can run code as this user"
        print(warning, file=sys.stderr, flush=True)
    elif not _is_loopback(urlsplit(address).hostname or ""):
        raise ValueError(
            f"a scheduler at {address} cannot reach workers that listen on {host}: give --host an "
            "address of this machine, or the scheduler's address on loopback if it runs here"
        )
    used = select(chosen)
    with private_folder() as folder:
        bracketed = f"[{host}]" if ":" in host else host  # as Dask expects IPv6 addresses
        nannies = options(used, None, host=bracketed, local_directory=folder)
        asyncio.run(_serve(address, used, nannies))


async def _serve(address: str, used: list[Device], options: list[dict[str, Any]]) -> None:
    nannies = [Nanny(address, **own) for own in options]
    try:
        await asyncio.gather(*nannies)
        for nanny, device in zip(nannies, used, strict=True):
            print(f"worker {nanny.worker_address} on {device}", flush=True)
        await asyncio.gather(*(nanny.finished() for nanny in nannies))
    except RuntimeError as error:
        host = options[0]["host"]
        raise ConnectionError(
            f"no worker starts: does a scheduler listen at {address}, and is {host} an address of "
            "this machine?"
        ) from error
    finally:
        await asyncio.gather(*(nanny.close() for nanny in nannies), return_exceptions=True)


def _is_loopback(host: str) -> bool:
    try:
        addresses = [info[4][0] for info in socket.getaddrinfo(host, None)]
    except OSError:  # an unknown name
        return False
    return all(ip_address(str(address).split("%")[0]).is_loopback for address in addresses)
