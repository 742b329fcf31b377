"""The command line of a runtime that enters an image with mount points laid over it."""

from pathlib import PurePath

from flowos.drivers import in_overlay, overlaid
from flowos.model import Image

AT, INIT = PurePath("/tmp/flowos-0/s/7"), PurePath("/init")
IMAGE = Image(form="squashfs", digest="sha256:x", source=PurePath("/images/x.sqfs"))


def test_a_runtime_enters_the_overlay_in_namespaces_that_flowos_init_makes() -> None:
    laid = overlaid(IMAGE, AT)
    assert (laid.form, laid.source, laid.digest) == ("folder", AT / "overlay-root", "sha256:x")
    argv = in_overlay(("bwrap", "--ro-bind", str(laid.source), "/"), laid, INIT)
    assert argv[:4] == ("/init", "--overlay", str(AT), "--")
    assert argv[4:] == ("bwrap", "--ro-bind", str(laid.source), "/")


def test_an_image_without_an_overlay_is_entered_as_it_is() -> None:
    assert in_overlay(("ch-run", "x"), IMAGE, INIT) == ("ch-run", "x")
