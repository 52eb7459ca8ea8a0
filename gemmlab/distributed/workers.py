"""The processes that multiply: Dask's workers, one for each device, with one thread and a resource to be found by."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from distributed import Client, Nanny, Scheduler, SpecCluster
from distributed.deploy.cluster import Cluster
from distributed.system import MEMORY_LIMIT

from ..opencl.devices import Device, default_device, devices, find_device

#: What each worker has one of: ``client.compute(c, resources={RESOURCE: 1})`` keeps a product to these workers, in a
#: cluster with others. (Annotations would be lost where Dask fuses tasks: its issues 7036 and 10325.)
RESOURCE = "OPENCL"


def to_use(chosen: Sequence[Device | int | str] | None = None) -> list[Device]:
    """The devices that workers are started for: those that are named, or all graphics processors, or the preferred one.

    The runtimes of one processor share its cores, so that without a graphics processor one of them is enough.

    Raises:
        NoDeviceError: if there is none, or none of that name.
        ValueError: if `chosen` is empty.
    """
    if chosen is not None:
        if isinstance(chosen, (str, int, Device)) or not len(chosen):
            raise ValueError(f"devices must be a list of one or more, such as [0, 1], not {chosen!r}")
        return [find_device(d) for d in chosen]
    return [d for d in devices() if d.kind == "GPU"] or [default_device()]


def options(used: Sequence[Device], memory_bytes: float | None = None) -> list[dict[str, Any]]:
    """The arguments of a `distributed.Nanny` for each of these devices; one that comes twice gets two workers.

    Workers of processors share the cores, and all share the memory: `memory_bytes` each, or equal parts of it all.
    """
    on_cores = sum(d.kind == "CPU" for d in used)
    cores = max(1, (os.cpu_count() or 1) // max(1, on_cores))
    of_processor = {name: str(cores) for name in ("POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT", "OMP_NUM_THREADS")}
    seen: Counter[int] = Counter()
    found = []
    for d in used:
        seen[d.index] += 1
        environment = {"GEMMLAB_DEVICE": str(d.index), **(of_processor if d.kind == "CPU" and on_cores > 1 else {})}
        found.append({
            "nthreads": 1,
            "silence_logs": logging.CRITICAL,
            "resources": {RESOURCE: 1},
            "env": environment,
            "memory_limit": int(memory_bytes or MEMORY_LIMIT / len(used)),
        })  # fmt: skip
    return found


class _Processes(SpecCluster):
    """Dask's cluster of given processes, but a worker that dies is left to its nanny, which starts it again.

    `SpecCluster` looks after a dead worker a while later, and closes its nanny for good if the worker is not there
    then, for instance because it died once more.
    """

    def _update_worker_status(self, op, msg):
        with suppress(KeyError):  # gone before it was seen
            Cluster._update_worker_status(self, op, msg)


@contextmanager
def cluster(
    devices: Sequence[Device | int | str] | None = None, *, memory_bytes: float | None = None, dashboard: bool = True
) -> Iterator[Client]:
    """A scheduler and a worker process per device of this machine, as long as the `with` block lasts.

    Args:
        devices: each a Device, an index or part of a name; one that comes twice gets two workers, for processors a
            way to try things out. By default all graphics processors, or else the preferred device.
        memory_bytes: of the host's memory for each worker; by default equal parts of it all. A worker that needs more
            puts blocks on disk, and is started again if that does not help.
        dashboard: whether to serve Dask's dashboard, at ``client.dashboard_link``; it needs the package bokeh.

    Yields:
        A `distributed.Client`: what is computed within the block runs on these workers.

    Raises:
        NoDeviceError: if there is no device, or none of that name.
    """
    used = to_use(devices)
    spec = {
        f"{d.name} ({number})": {"cls": Nanny, "options": given}
        for number, (d, given) in enumerate(zip(used, options(used, memory_bytes), strict=True))
    }
    address = {"dashboard_address": ":0" if dashboard else None}
    scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard": dashboard, **address}}
    with (
        _Processes(spec, scheduler, name="gemmlab", silence_logs=logging.ERROR) as processes,
        Client(processes) as client,
    ):
        client.wait_for_workers(len(used))
        yield client


def survey(client: Client) -> dict[str, dict[str, Any]]:
    """The device of each worker, by the worker's address: its name, kind, memory in bytes, and the process's number."""
    return client.run(_own_device)


def _own_device() -> dict[str, Any]:
    d = default_device()
    return {"device": str(d), "kind": d.kind, "memory_bytes": d.memory, "process": os.getpid()}


def serve(address: str, chosen: Sequence[str] | None = None, memory_bytes: float | None = None) -> None:
    """Start workers for this machine's devices, for a scheduler elsewhere, and wait until they end.

    Args:
        address: of the scheduler, such as "tcp://10.0.0.1:8786"; "10.0.0.1:8786" will do.
        chosen, memory_bytes: as in `cluster`.

    Raises:
        NoDeviceError: if there is no device, or none of that name.
        ConnectionError: if no scheduler answers there.
    """
    asyncio.run(_serve(address, to_use(chosen), memory_bytes))


async def _serve(address: str, used: list[Device], memory_bytes: float | None) -> None:
    nannies = [Nanny(address, **given) for given in options(used, memory_bytes)]
    try:
        try:
            await asyncio.gather(*nannies)
        except RuntimeError as error:
            raise ConnectionError(f"no worker could be started: does a scheduler listen at {address}?") from error
        for nanny, device in zip(nannies, used, strict=True):
            print(f"worker {nanny.worker_address} on {device}", flush=True)
        await asyncio.gather(*(nanny.finished() for nanny in nannies))
    finally:
        await asyncio.gather(*(nanny.close() for nanny in nannies), return_exceptions=True)
