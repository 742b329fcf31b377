"""`flowos serve`: pages of what runs and ran, in the browser."""

import argparse
import sys

from flowos.cli._output import note, print_json
from flowos.cli._shared import add_json, add_store, top_command


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(commands, "serve", "flowos serve --open")
    command.add_argument(
        "--port", type=_port, default=0, metavar="N", help="of 127.0.0.1 (default: a free one)"
    )
    command.add_argument("--open", action="store_true", help="open it in your browser")
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations.serve import opened_in_browser, page_server

    server = page_server(args.store, args.port)
    if args.json:
        print_json({"url": server.url, "port": server.port}, indent=None)
    else:
        print(server.url)
        note("# only you can open this address; Ctrl-C ends it")
    sys.stdout.flush()
    if not args.open:
        server.serve()
        return 0
    with opened_in_browser(server.url):
        server.serve()
    return 0


def _port(word: str) -> int:
    number = int(word) if word.isascii() and word.isdecimal() and len(word) < 6 else -1
    if not 0 <= number < 1 << 16:
        raise argparse.ArgumentTypeError(f"{word:.40}: expected a port, 0 to 65535")
    return number
