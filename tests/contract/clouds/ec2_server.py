"""EC2 on this machine: moto's, over real HTTP, spelt as Amazon's is, on a way that may fail.

As a program it prints its URL, and ends with its standard input.
"""

import http.client
import logging
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

IMAGE = "ami-03cf127a"
"""One of those that moto has."""

_CLOSED = re.compile(rb'(xmlns="http://ec2\.amazonaws\.com/doc/\d{4}-\d\d-\d\d)"')
_COMPLAINT = re.compile(rb"<Response xmlns=[^>]*>")


class Ec2Server:
    """lose: words of a request, once, that is served and whose answer is lost."""

    def __init__(self) -> None:
        from moto.server import ThreadedMotoServer  # late: a second

        logging.getLogger("werkzeug").setLevel(logging.WARNING)
        self.lose = b""
        self.lost = 0
        self._moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        self._moto.start()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server._serve(self)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._way = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._way.daemon_threads = True
        self._thread = Thread(target=self._way.serve_forever, args=(0.05,))
        self._thread.start()
        self.port = self._way.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._way.shutdown()
        self._way.server_close()
        self._thread.join()
        self._moto.stop()

    def _serve(self, asked: BaseHTTPRequestHandler) -> None:
        body = asked.rfile.read(int(asked.headers.get("content-length", 0)))
        there = http.client.HTTPConnection(*self._moto.get_host_and_port())
        there.request(asked.command, asked.path, body, dict(asked.headers.items()))
        answer = there.getresponse()
        text = _as_amazon_spells(answer.read())
        there.close()
        if self.lose and self.lose in asked.path.encode() + body:
            self.lose = b""
            self.lost += 1
            asked.close_connection = True
            return
        asked.send_response(answer.status)
        asked.send_header("content-type", "text/xml")
        asked.send_header("content-length", str(len(text)))
        asked.end_headers()
        asked.wfile.write(text)


def _as_amazon_spells(text: bytes) -> bytes:
    """The name space ends in a slash, and complaints have none."""
    return _COMPLAINT.sub(b"<Response>", _CLOSED.sub(rb'\1/"', text))


if __name__ == "__main__":
    server = Ec2Server()
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop()
