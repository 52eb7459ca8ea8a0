"""Requests that wait: the newest of each client, and what a person asked for first."""

import threading

from gemmlab.worker.mailbox import Mailbox


def test_only_the_newest_request_of_a_client_is_kept():
    box = Mailbox()
    for number in range(5):
        box.put("slider", number)
    box.put("other", "x")
    assert box.take() == 4 and not box.has("slider") and box.has("other") and box.take() == "x"


def test_what_runs_in_the_background_is_overtaken():
    box = Mailbox()
    box.put("ladder 1", "background 1", background=True)
    box.put("ladder 2", "background 2", background=True)
    assert not box.is_urgent()
    box.put("slider", "urgent")
    assert box.is_urgent()
    assert [box.take() for _ in range(3)] == ["urgent", "background 1", "background 2"]


def test_what_is_put_back_does_not_displace_a_newer_request():
    box = Mailbox()
    box.put_back("ladder", "old")
    assert not box.is_urgent() and box.take() == "old"
    box.put("ladder", "new", background=True)
    box.put_back("ladder", "old")
    assert box.take() == "new" and not box.has("ladder")


def test_taking_waits_for_a_request():
    box, taken = Mailbox(), []
    thread = threading.Thread(target=lambda: taken.append(box.take()), daemon=True)
    thread.start()
    box.put("slider", 1)
    thread.join(30)
    assert taken == [1]
