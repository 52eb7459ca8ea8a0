"""How long a kernel may take in tests, since a machine may be slow, or busy with other tests."""

#: Seconds for the steps of a worker, in place of those of `client.LIMITS`.
LIMITS = {
    "start": 240.0,
    "compile": 240.0,
    "predict": 60.0,
    "check": 60.0,
    "time": 60.0,
    "look": 60.0,
}
#: For the kernel of a notebook, which runs it before the first cell.
STARTUP = (
    "from gemmlab.sandbox import client\n\n"
    f"client.shared_sandbox().limits |= {LIMITS}\ndel client\n"
)
#: After it: no product is refused because it would take long.
BUSY = """
from gemmlab.widgets import state

state.MOST_SECONDS = 60.0
del state
"""
