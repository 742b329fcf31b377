"""What is seen in a Dockerfile before anything is built."""

import pytest

from flowos.drivers.images import dockerfile

STAGES = """\
# syntax=docker/dockerfile:1
ARG WHICH=12
from --platform=linux/amd64 tools as first
FROM first
FROM
FROM scratch
FROM debian:$WHICH
FROM debian:12 AS last
FROM tools
FROM last
"""


def test_the_images_that_a_recipe_begins_with_are_named_once() -> None:
    assert dockerfile.bases(STAGES) == ("tools", "debian:12")


@pytest.mark.parametrize(
    "text", ["", "FROM\n", "RUN true\n", "# FROM x\n", "RUN echo \\\n FROM x\n"]
)
def test_a_recipe_without_from_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="no FROM in it: say what the image begins with"):
        dockerfile.bases(text)


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("COPY a b/ /to/", ("a", "b")),
        ("copy --chown=1:1 ./a/../c /to", ("c",)),
        ("ADD /a /to", ("a",)),
        ("COPY a \\\n  # why\n\n  b /to", ("a", "b")),
        ("COPY . /to", ("",)),
        ("COPY --from=other a /to", ()),
        ("COPY a* $B c[12] d? /to", ()),
        ('COPY ["a", "/to"]', ()),
        ("ADD https://x.org/a git@x.org:a.git /to", ()),
        ("COPY <<END /to\nEND", ()),
        ("RUN <<END\nCOPY a /to\nEND", ()),
        ("COPY a /to\nFROM second", ()),
        ("RUN COPY a /to", ()),
    ],
)
def test_what_is_surely_copied_is_known(line: str, paths: tuple[str, ...]) -> None:
    assert dockerfile.copied(f"FROM x\n{line}\n") == paths
