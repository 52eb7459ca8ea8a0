"""Static servers, as tests of pages need them."""

import contextlib
import functools
import http.server
import threading
from pathlib import Path


@contextlib.contextmanager
def served(folder: Path, cdn: bool = False):
    """The address of a static server for a folder: as `python -m http.server`, or as a CDN, from
    which pages of other hosts may load.
    """

    class Handler(http.server.SimpleHTTPRequestHandler):
        extensions_map = {
            **http.server.SimpleHTTPRequestHandler.extensions_map,
            ".mjs": "text/javascript",
            ".wasm": "application/wasm",
        }

        def end_headers(self):
            if cdn:
                self.send_header("Access-Control-Allow-Origin", "*")
            super().end_headers()

        def log_message(self, *_):
            pass

    handler = functools.partial(Handler, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
