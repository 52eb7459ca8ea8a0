"""Whom the processes of a cluster listen to: this machine alone, unless somebody asks for more."""

import os
import shutil
import stat
import subprocess
import sys
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
from conftest import lacking, run_python

pytest.importorskip("dask")

import dask.array as da
import psutil
import zarr
from dask.distributed import Client, LocalCluster, Security

from gemmlab import check, distributed
from gemmlab.distributed import workers

PROGRAMS = Path(__file__).resolve().parents[2] / "docs" / "programs.md"
GUARD = 'if __name__ == "__main__":'

CLUSTER = """
from gemmlab import distributed
if __name__ == "__main__":
    with distributed.cluster([{index}, {index}]):
        print("ready", flush=True)
        input()
"""
#: A scheduler without workers of its own.
NO_WORKERS = {"n_workers": 0, "host": workers.LOOPBACK, "dashboard_address": None}


@pytest.fixture
def security(tmp_path):
    """A certificate, which is its own authority, for all roles."""
    if not shutil.which("openssl"):
        lacking("no openssl")
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    what = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=gemmlab"]
    command = ["openssl", "req", *what, "-out", cert, "-keyout", key]
    subprocess.run(command, check=True, capture_output=True)
    files = {"cert": cert, "key": key}
    roles = ("scheduler", "worker", "client")
    given = {f"tls_{role}_{kind}": file for role in roles for kind, file in files.items()}
    return Security(require_encryption=True, tls_ca_file=cert, **given)


@contextmanager
def running(command, temporary, **variables):
    """A process that has printed its first line, and the line; its temporary files are in
    `temporary`.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "TMPDIR": str(temporary), **variables}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            yield process, line
        finally:
            process.terminate()


def worker_command(address, device, *more):
    options = ["--device", str(device.index), *more]
    return [sys.executable, "-m", "gemmlab", "worker", address, *options]


def is_right_on(client):
    """Whether the workers of a client multiply."""
    a, b = check.exact_inputs(60, 50, 70)
    c = distributed.matmul(*(da.from_array(x, chunks=35) for x in (a, b)))
    return check.exact(client.compute(c).result(), a, b).ok


def sockets(process):
    """Address and port of each socket on which a process or one of its descendants listens."""
    first = psutil.Process(process.pid)
    found = [each.net_connections("inet") for each in (first, *first.children(recursive=True))]
    listening = [c.laddr for some in found for c in some if c.status == psutil.CONN_LISTEN]
    return {(ip_address(address.ip), address.port) for address in listening}


def assert_loopback_alone(process, at_least):
    found = sockets(process)
    assert len(found) >= at_least and all(address.is_loopback for address, _ in found), found


def scratch_folders(temporary):
    """Where the workers of a process put blocks on disk, and the permissions of these folders."""
    folders = {path.parent for path in temporary.rglob("dask-scratch-space*")}
    return [(folder.parent, stat.S_IMODE(folder.stat().st_mode)) for folder in folders]


def test_a_cluster_listens_on_loopback_alone(any_device, tmp_path):
    script = CLUSTER.format(index=any_device.index)
    with running([sys.executable, "-c", script], tmp_path) as (process, _):
        # a scheduler and two nannies; two workers; HTTP of the scheduler and the workers
        assert_loopback_alone(process, 8)
        assert scratch_folders(tmp_path) == [(tmp_path, 0o700)]
        process.communicate("\n", timeout=60)
    assert scratch_folders(tmp_path) == []


def test_a_worker_listens_on_loopback_alone_and_ends_with_its_scheduler(any_device, tmp_path):
    """`python -m gemmlab worker` takes part in a scheduler that somebody else has started."""
    with LocalCluster(**NO_WORKERS) as scheduler, Client(scheduler) as client:
        command = worker_command(scheduler.scheduler_address, any_device)
        with running(command, tmp_path) as (process, line):
            assert line.startswith(f"worker tcp://{workers.LOOPBACK}:") and str(any_device) in line
            assert_loopback_alone(process, 3)
            assert scratch_folders(tmp_path) == [(tmp_path, 0o700)]
            assert is_right_on(client)
            client.shutdown()
            process.communicate(timeout=60)
    assert scratch_folders(tmp_path) == []


@pytest.mark.system
def test_workers_with_tls(any_device, security, tmp_path):
    """A worker of another scheduler; and a cluster, which refuses clients without."""
    with LocalCluster(security=security, **NO_WORKERS) as scheduler, Client(scheduler) as client:
        command = worker_command(scheduler.scheduler_address.removeprefix("tls://"), any_device)
        configured = {
            "REQUIRE_ENCRYPTION": "True",
            "TLS__CA_FILE": security.tls_ca_file,
            "TLS__WORKER__CERT": security.tls_worker_cert,
            "TLS__WORKER__KEY": security.tls_worker_key,
        }
        variables = {f"DASK_DISTRIBUTED__COMM__{k}": v for k, v in configured.items()}
        with running(command, tmp_path, **variables) as (_, line):
            assert line.startswith("worker tls://") and is_right_on(client)
    with distributed.cluster([any_device], dashboard=False, security=security) as client:
        assert all(address.startswith("tls://") for address in distributed.survey(client))
        assert is_right_on(client)
        with pytest.raises(OSError, match="timed out|closed"):
            Client(client.scheduler.address.replace("tls", "tcp"), timeout=2)


@pytest.mark.parametrize(
    ("address", "host"),
    [("192.0.2.77:8786", "127.0.0.1"), ("tls://192.0.2.77", "::1")],
)
def test_a_worker_out_of_reach_of_its_scheduler_is_refused(address, host):
    with pytest.raises(ValueError, match="give --host"):
        workers.serve(address, host=host)


def test_a_worker_with_another_machine_s_address(any_device, capsys):
    """A line on stderr says who can connect to it."""
    host = "192.0.2.77"
    with (
        pytest.raises(ConnectionError, match=f"127.0.0.1:1.*{host}"),
        workers.dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
    ):
        workers.serve("127.0.0.1:1", [any_device], host=host)
    assert "run code as this user" in capsys.readouterr().err


@pytest.mark.parametrize("guarded", [True, False])
def test_the_documented_script(guarded, tmp_path, any_device):
    """It runs; without the guard it is refused in a sentence."""
    _, _, rest = PROGRAMS.read_text(encoding="utf-8").partition("`gemmlab.distributed` (extra")
    text = rest.partition("```python\n")[2].partition("```")[0]
    assert GUARD in text
    (tmp_path / "script.py").write_text(text if guarded else text.replace(GUARD, "if True:"))
    done = run_python("script.py", folder=tmp_path)
    if guarded:
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
        c = zarr.open(str(tmp_path / "c.zarr"), mode="r")
        assert (c[:] == c.shape[0]).all(), "a product of ones"
    else:
        assert done.returncode == 1 and len(done.stderr.splitlines()) < 20, done.stderr
        assert GUARD in done.stderr.splitlines()[-1]
