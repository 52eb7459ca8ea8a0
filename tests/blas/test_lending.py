"""Memory that a device borrows: nothing ends before the device has finished with it."""

import pyopencl as cl
import pytest

from gemmlab.blas.arrays import complete, lend


class Queue:
    """A queue whose `finish` is interrupted a few times before it comes to its end."""

    def __init__(self, *raised):
        self.raised, self.finished = list(raised), 0

    def finish(self):
        if self.raised:
            raise self.raised.pop(0)
        self.finished += 1


def test_the_result_is_returned_once_the_device_has_finished():
    queue = Queue()
    assert lend(lambda: "result", queue.finish) == "result"
    assert queue.finished == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError, MemoryError])
def test_an_exception_waits_for_every_queue_and_is_raised(error):
    queues = Queue(), Queue()

    def work():
        raise error("first")

    with pytest.raises(error, match="first"):
        lend(work, *(queue.finish for queue in queues))
    assert [queue.finished for queue in queues] == [1, 1]


def test_an_interrupt_in_a_wait_starts_it_again():
    first, second = Queue(KeyboardInterrupt("first"), KeyboardInterrupt("second")), Queue()
    with pytest.raises(KeyboardInterrupt, match="first"):
        lend(lambda: None, first.finish, second.finish)
    assert (first.finished, second.finished) == (1, 1)


def test_a_lost_device_is_not_waited_for_for_ever():
    queue = Queue(cl.RuntimeError("CL_OUT_OF_RESOURCES"))
    complete(queue.finish)
    assert queue.finished == 0
