"""Programs in sh: what they are given stands above them, quoted, and what they do is fixed."""

import shlex
from collections.abc import Mapping

CHECK_NODES = """\
if [ $# = 0 ]; then
  echo "usage: $0 NODE..." >&2
  exit 2
fi
for node; do
  case $node in
    '' | [.-]* | *[!A-Za-z0-9._-]*)
      echo "$0: '$node' is no name of a node" >&2
      exit 2
      ;;
  esac
done
"""
"""Of each node before anything is done."""

ROOT = 'root=$(dirname "$(dirname "$(readlink -f "$0")")")\n'
"""The folder of all kernels that were published there."""


def program(about: str, settings: Mapping[str, str], body: str) -> str:
    """about: lines of a comment."""
    comment = "".join(f"# {line}\n" for line in about.splitlines())
    given = "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings.items())
    return f"#!/bin/sh\n{comment}set -eu\nexport LC_ALL=C\n{given}{body}"
