"""Ctrl-C in a product: no device may go on writing to memory that its owner has back."""

import threading
import time
from pathlib import Path

import conftest
import numpy as np
import pyopencl as cl
import pytest

import gemmlab
from gemmlab.blas import plan, staging
from gemmlab.blas.run import session_of
from gemmlab.blas.staging import complete

#: Interrupts of a run; `python tests/blas/interrupts.py DEVICE 20000` makes as many as you like.
COUNT = 400 if conftest.NO_SKIP else 100


def test_random_interrupts_change_no_array_of_others(device):
    program = str(Path(__file__).with_name("interrupts.py"))
    run = conftest.run_python(program, str(device.index), str(COUNT))
    assert run.returncode == 0, f"the process died ({run.returncode}): {run.stderr[-2000:]}"
    assert run.stdout.split() == [str(COUNT), "0", "0"], "interrupted, overwritten, wrong"


def test_staging_gives_memory_back_only_when_no_thread_uses_it(any_device, monkeypatch):
    """Copies run on threads, one of which is slow, and the caller is interrupted meanwhile."""
    for name, value in (("STRIP", 16), ("STRIPS", 4), ("PIECE", 1000), ("THREADS", 2)):
        monkeypatch.setattr(staging, name, value)
    ring, queue = staging.Staging(any_device.context, any_device), any_device.queue
    x, busy, begun, copy = np.ones((64, 64), np.float32), [], threading.Event(), np.copyto
    allocate = session_of(queue, any_device).pool.allocate
    buffer, result, out = allocate(x.nbytes), allocate(x.nbytes), np.empty_like(x)

    def launch():
        return [("copy", cl.enqueue_copy(queue, result, buffer))]

    def slowly(to, source):
        busy.append(1)
        begun.set()
        time.sleep(0.05)
        copy(to, source)
        busy.pop()

    def interrupt(*_):
        begun.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(staging.np, "copyto", slowly)
    monkeypatch.setattr(staging, "_results", interrupt)
    part = staging.Strip([(x, buffer)], launch, result, out)
    with pytest.raises(KeyboardInterrupt):
        ring.compute(queue, [part])
    assert begun.is_set() and not busy
    time.sleep(0.1)
    assert not busy, "a copy began after the caller had its memory back"
    monkeypatch.undo()
    ring.compute(queue, [part._replace(operands=[(3 * x, buffer)])])
    assert (out == 3).all()


def test_a_wait_is_repeated_until_it_returns():
    raised, done = [KeyboardInterrupt(), SystemExit()], []

    def wait():
        if raised:
            raise raised.pop()
        done.append("finished")

    def lost():
        done.append("lost")
        raise cl.RuntimeError("CL_OUT_OF_RESOURCES")

    complete(wait, lost, wait)
    assert done == ["finished", "lost", "finished"]


@pytest.mark.parametrize("kind", ["matmul", "gemm", "batch"])
def test_an_interrupt_right_after_a_launch_waits_for_the_kernel(device, monkeypatch, kind):
    """The exact moment: the kernel has just begun to write to `out`, and takes milliseconds."""
    n = 700
    x, out = np.ones((n, n), np.float32), np.zeros((n, n), np.float32)
    if kind == "batch":  # of a type that has one launch for it
        x, out = np.ones((3, 300, 300), np.complex64), np.zeros((3, 300, 300), np.complex64)
    number, launched, enqueue = 0, [], plan.KernelLaunch.__call__

    def interrupted(step, queue, memory):
        launched.append(enqueue(step, queue, memory))
        queue.flush()
        if len(launched) == number:
            raise KeyboardInterrupt
        return launched[-1]

    def call():
        if kind == "gemm":
            return gemmlab.gemm(1, x, x, 1, out, overwrite_c=True, device=device)
        return gemmlab.matmul(x, x, out, device=device)

    with monkeypatch.context() as patch:
        patch.setattr(plan.KernelLaunch, "__call__", interrupted)
        call()  # compiled and planned: the next call does nothing but launch
        number = 2 * len(launched)
        with pytest.raises(KeyboardInterrupt):
            call()
    out[...] = 7
    time.sleep(0.05)
    assert len(launched) == number > 0 and (out == 7).all()
    assert (gemmlab.matmul(x, x, device=device) == x.shape[-1]).all()
