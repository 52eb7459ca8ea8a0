"""Whom the processes of a cluster listen to: this machine alone, unless somebody says otherwise."""

import os
import shutil
import socket
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import DEVICES, lacking

pytest.importorskip("dask")

import dask.array as da
import listening
from dask.distributed import Client, LocalCluster, Security

from gemmlab import check, distributed
from gemmlab.distributed import workers

PROGRAMS = Path(__file__).resolve().parents[2] / "docs" / "programs.md"

CLUSTER = """
from gemmlab import distributed
if __name__ == "__main__":
    with distributed.cluster([{index}, {index}], dashboard={dashboard}):
        print("ready", flush=True)
        input()
"""

linux = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="needs Linux's list of sockets"
)


@pytest.fixture
def device():
    if not DEVICES:
        lacking("no OpenCL device")
    return next(iter(DEVICES.values()))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """The files of a certificate, which is its own authority, and of its key."""
    if not shutil.which("openssl"):
        lacking("no openssl")
    cert, key = (str(tmp_path_factory.mktemp("tls") / f"{name}.pem") for name in ("cert", "key"))
    what = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=gemmlab"]
    command = ["openssl", "req", *what, "-out", cert, "-keyout", key]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


@pytest.fixture
def security(certificate):
    cert, key = certificate
    of_roles = {
        f"tls_{role}_{kind}": file
        for role in ("scheduler", "worker", "client")
        for kind, file in (("cert", cert), ("key", key))
    }
    return Security(require_encryption=True, tls_ca_file=cert, **of_roles)


@contextmanager
def running(command, temporary=None):
    """A process that has printed its first line; yields the process and the line.

    The process makes its temporary files in the folder `temporary`.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "TMPDIR": str(temporary)} if temporary else None
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            yield process, line
        finally:
            process.terminate()


def command_for_worker(address, device, *more):
    return [
        sys.executable,
        "-m",
        "gemmlab",
        "worker",
        address,
        "--device",
        str(device.index),
        *more,
    ]


def is_right_on(client):
    """Whether the workers of a client multiply."""
    a, b = check.exact_inputs(60, 50, 70)
    c = distributed.matmul(*(da.from_array(x, chunks=35) for x in (a, b)))
    return check.exact(client.compute(c).result(), a, b).ok


def assert_loopback_alone(process, at_least):
    found = listening.sockets(process.pid)
    assert len(found) >= at_least, found
    assert {address for address, _ in found if not address.is_loopback} == set()
    for _, port in found:
        for address in listening.own_addresses():
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((str(address), port), timeout=10)


def scratch_folders(temporary):
    """Where the workers of a process put blocks on disk, and the permissions of these folders."""
    folders = {path.parent for path in temporary.rglob("dask-scratch-space*")}
    return [(folder.parent, stat.S_IMODE(folder.stat().st_mode)) for folder in folders]


@linux
@pytest.mark.parametrize("dashboard", [True, False])
def test_a_cluster_listens_on_loopback_alone(device, dashboard, tmp_path):
    script = CLUSTER.format(index=device.index, dashboard=dashboard)
    with running([sys.executable, "-c", script], tmp_path) as (process, _):
        # a scheduler and two nannies; two workers; HTTP of the scheduler and the workers
        assert_loopback_alone(process, 8)
        assert scratch_folders(tmp_path) == [(tmp_path, 0o700)]
        process.communicate("\n", timeout=60)
    assert scratch_folders(tmp_path) == []


@linux
def test_a_worker_listens_on_loopback_alone(device, tmp_path):
    with LocalCluster(n_workers=0, host=workers.LOOPBACK, dashboard_address=None) as scheduler:
        command = command_for_worker(scheduler.scheduler_address, device)
        with running(command, tmp_path) as (process, line):
            assert line.startswith(f"worker tcp://{workers.LOOPBACK}:")
            assert_loopback_alone(process, 3)
            assert scratch_folders(tmp_path) == [(tmp_path, 0o700)]
            process.terminate()
            process.communicate(timeout=60)
    assert scratch_folders(tmp_path) == []


@linux
@pytest.mark.system
def test_a_worker_with_a_host_says_what_that_means(device):
    if not (own := listening.own_addresses()):
        pytest.skip("this machine has no address but loopback")
    host = str(own[0])
    with LocalCluster(n_workers=0, host=workers.LOOPBACK, dashboard_address=None) as scheduler:
        command = command_for_worker(scheduler.scheduler_address, device, "--host", host)
        with running(command) as (process, _):
            found = listening.sockets(process.pid)
            assert {str(address) for address, _ in found} == {host, workers.LOOPBACK}
            process.terminate()
            sentence = process.stderr.readline()
    assert host in sentence and "run code as this user" in sentence


@pytest.mark.system
def test_a_worker_with_tls(device, certificate, security):
    cert, key = certificate
    options = {"n_workers": 0, "host": workers.LOOPBACK, "dashboard_address": None}
    with LocalCluster(security=security, **options) as scheduler, Client(scheduler) as client:
        address = scheduler.scheduler_address.removeprefix("tls://")
        files = ["--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key]
        with running(command_for_worker(address, device, *files)) as (_, line):
            assert line.startswith("worker tls://")
            assert is_right_on(client)


@pytest.mark.system
def test_a_cluster_with_tls_refuses_a_client_without(device, security):
    with distributed.cluster([device], dashboard=False, security=security) as client:
        assert all(address.startswith("tls://") for address in distributed.survey(client))
        assert is_right_on(client)
        with pytest.raises(OSError, match="timed out|closed"):
            Client(client.scheduler.address.replace("tls", "tcp"), timeout=2)


@pytest.mark.parametrize(
    ("address", "options", "message"),
    [
        ("192.0.2.77:8786", {}, "192.0.2.77:8786 is not on this machine .* give --host"),
        ("tcp://192.0.2.77:8786", {"host": "localhost"}, "give --host"),
        ("tls://192.0.2.77", {"host": "::1"}, "give --host"),
        ("127.0.0.1:1", {"host": "192.0.2.77"}, "--host must be an address of this machine"),
        ("127.0.0.1:1", {"host": "nowhere.invalid"}, "--host must be an address of this machine"),
    ],
)
def test_a_worker_out_of_reach_is_refused(address, options, message):
    with pytest.raises(ValueError, match=message):
        workers.serve(address, **options)


@pytest.mark.parametrize("files", [("ca", None, None), (None, "cert", "key"), ("ca", None, "key")])
def test_certificates_come_together(files):
    with pytest.raises(ValueError, match="--tls-ca-file and --tls-cert"):
        workers.tls(*files)


def documented_script() -> str:
    """The documentation's example of a distributed product."""
    _, _, rest = PROGRAMS.read_text(encoding="utf-8").partition("`gemmlab.distributed` (extra")
    return rest.partition("```python\n")[2].partition("```")[0]


def run_script(text, folder):
    (folder / "script.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "script.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def test_the_documented_script_runs(tmp_path, any_device):
    done = run_script(documented_script(), tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    zarr = pytest.importorskip("zarr")
    c = zarr.open(str(tmp_path / "c.zarr"), mode="r")
    assert (c[:] == c.shape[0]).all(), "a product of ones"


def test_a_script_without_the_guard_is_refused_in_a_sentence(tmp_path, any_device):
    guard = 'if __name__ == "__main__":'
    assert guard in documented_script()
    done = run_script(documented_script().replace(guard, "if True:"), tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) < 20, done.stderr
    assert done.stderr.splitlines()[-1].startswith("RuntimeError: ")
    assert guard in done.stderr.splitlines()[-1]
