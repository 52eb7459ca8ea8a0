"""How the processes of pytest-xdist share the tests, and go on when one of them dies."""

import contextlib

from xdist.scheduler import LoadScopeScheduling


class ByNotebook(LoadScopeScheduling):
    """Tests of one notebook share a JupyterLab, and those of the site's pages a site, so that one
    process runs them; all others go wherever there is room. `the_ladder` takes as long as all other
    notebooks in a tab together, and another process runs it.

    When a process dies, pytest-xdist 3.8 gives the tests that it had finished to others, as units
    of nothing, and leaves its successor waiting for a second test: the run never ends. Hence the
    two methods below.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, name = nodeid.partition("::")
        if file.endswith("test_chapters.py"):
            return file + name.partition("[")[2]
        if name.endswith("[the_ladder]"):
            return nodeid
        return file if "browser/" in file or file.endswith("test_pages.py") else nodeid

    def remove_node(self, node) -> str | None:
        """Forget a process that has ended; if tests are left, it died in the first of them."""
        left = {}
        for scope, tests in self.assigned_work.pop(node).items():
            if waiting := {test: done for test, done in tests.items() if not done}:
                left[scope] = waiting
        if not left:
            return None
        scope, waiting = next(iter(left.items()))
        crashed = next(iter(waiting))
        del waiting[crashed]
        if not waiting:
            del left[scope]
        self.workqueue.update(left)
        for other in self.nodes:
            self._reschedule(other)
        return crashed

    def _reschedule(self, node) -> None:
        """Give a process more tests, once it has said which it knows. It starts one when it has the
        next one, too. If it dies at this moment, `remove_node` will be called.
        """
        if node not in self.registered_collections:
            return
        with contextlib.suppress(OSError):
            super()._reschedule(node)
            if self._pending_of(self.assigned_work[node]) == 1:
                super()._reschedule(node)
