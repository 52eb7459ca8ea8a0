"""Memory that a device borrows: nothing ends before the device has finished with it."""

import pyopencl as cl

from gemmlab.blas.arrays import complete


class Queue:
    """A queue whose `finish` is interrupted a few times before it comes to its end."""

    def __init__(self, *raised):
        self.raised, self.finished = list(raised), 0

    def finish(self):
        if self.raised:
            raise self.raised.pop(0)
        self.finished += 1


def test_every_queue_is_waited_for():
    queues = Queue(), Queue()
    complete(*(queue.finish for queue in queues))
    assert [queue.finished for queue in queues] == [1, 1]


def test_an_interrupt_starts_the_wait_again():
    first, second = Queue(KeyboardInterrupt(), KeyboardInterrupt(), SystemExit()), Queue()
    complete(first.finish, second.finish)
    assert (first.finished, second.finished) == (1, 1)


def test_a_lost_device_is_not_waited_for_forever():
    queue = Queue(cl.RuntimeError("CL_OUT_OF_RESOURCES"))
    complete(queue.finish)
    assert queue.finished == 0
