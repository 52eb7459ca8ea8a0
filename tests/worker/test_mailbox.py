"""Requests that wait: the newest of each client."""

import threading

from gemmlab.worker.mailbox import Mailbox


def test_only_the_newest_request_of_a_client_is_kept():
    box = Mailbox()
    assert box.empty()
    for number in range(5):
        box.put("slider", number)
    box.put("other", "x")
    assert not box.empty() and box.take() == 4
    assert not box.has("slider") and box.has("other") and box.take() == "x" and box.empty()


def test_taking_waits_for_a_request():
    box, taken = Mailbox(), []
    thread = threading.Thread(target=lambda: taken.append(box.take()), daemon=True)
    thread.start()
    box.put("slider", 1)
    thread.join(30)
    assert taken == [1]
