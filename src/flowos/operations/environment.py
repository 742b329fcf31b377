"""`fo.environment`: an environment from a word and options."""

import re
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path, PurePath

from flowos._dataclasses import replace
from flowos.drivers import BOOTING, RUNTIMES
from flowos.model import BARE, Environment, EnvironmentRefused, Pairs

Word = str | PathLike[str] | Environment | None
GivenBind = str | PathLike[str] | tuple[str | PathLike[str], str | PathLike[str]]


def environment(
    word: Word = None,
    *,
    binds: Iterable[GivenBind] = (),
    devices: Iterable[str] = (),
    variables: Mapping[str, str] | Iterable[str] = (),
) -> Environment:
    """Describe an environment.

    word: "bare" or None, the path of an image, or (as text) its name in the image library; an
    image may be followed by @RUNTIME (`image.sqfs@podman`), where qemu boots it, with
    @qemu:kernel=NAME,mem=1G. `bare:kernel=NAME` or `image@bwrap:kernel=NAME`, in a Slurm pool:
    nodes that have booted it. binds: SRC, "SRC:DST", "SRC:DST:ro", or
    (SRC, DST) with "DST:ro" for read-only. devices: CDI names, as nvidia.com/gpu=0. variables: by
    name, or "NAME=VALUE".
    Raises EnvironmentRefused for an unknown image or runtime, or an invalid option.

    >>> fo.environment("bare", variables={"OMP_NUM_THREADS": "1"}).variables
    (('OMP_NUM_THREADS', '1'),)
    """
    base = word if isinstance(word, Environment) else _named(word, digest=True)
    return _completed(base, binds, devices, variables)


def environment_to_enter(
    word: str | None, binds: Iterable[str], devices: Iterable[str], variables: Iterable[str]
) -> Environment:
    """For commands, of which no result is kept: the image's digest is not read."""
    return _completed(_named(word, digest=False), binds, devices, variables)


def split_runtime(word: str) -> tuple[str, str]:
    """(NAME, RUNTIME) of NAME@RUNTIME; (NAME, "") of one without.

    A file may have an @ in its name, and a digest follows one too.
    """
    name, _, runtime = word.rpartition("@")
    if not name or runtime.startswith("sha256:") or Path(word).exists():
        return word, ""
    return name, runtime


def _completed(
    base: Environment,
    binds: Iterable[GivenBind],
    devices: Iterable[str],
    variables: Mapping[str, str] | Iterable[str],
) -> Environment:
    made = replace(
        base,
        binds=(*base.binds, *map(_bind, binds)),
        devices=(*base.devices, *map(_device, devices)),
        variables=tuple((dict(base.variables) | dict(_variables(variables))).items()),
    )
    if made.image is None and (made.binds or made.devices):
        what, has = ("binds", "file") if made.binds else ("devices", "device")
        raise EnvironmentRefused(
            f"environment bare: it has every {has} of this machine; leave out the {what}, "
            "or name an image"
        )
    return made


def _brief_repr(value: object) -> str:
    from flowos.model import brief_repr  # loads the types of ports

    return brief_repr(value)


def _named(word: object, *, digest: bool) -> Environment:
    if word is None:
        return BARE
    if not isinstance(word, (str, PathLike)) or not fspath(word):
        raise EnvironmentRefused(
            f"environment {_brief_repr(word)}: expected 'bare', or an image by its path or name"
        )
    given = word if isinstance(word, str) else fspath(Path(word).absolute())
    given, kernel = _without_kernel(given)
    return replace(_without_boot(given, digest=digest), kernel=kernel)


def _without_kernel(word: str) -> tuple[str, str]:
    """(the same, kernel) of IMAGE@RUNTIME:kernel=NAME, where a node of a pool is to boot it."""
    name, found, kernel = word.rpartition(":kernel=")
    if not found or split_runtime(name)[1] in BOOTING or Path(word).exists():
        return word, ""
    if not name or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", kernel):
        raise EnvironmentRefused(
            f"environment {_brief_repr(word)}: kernel {kernel!r:.80}: expected letters, digits, "
            "_.- (not first), behind bare or an image"
        )
    return name, kernel


def _without_boot(given: str, *, digest: bool) -> Environment:
    name, runtime = split_runtime(given)
    if name != given:
        _check_runtime(given, runtime)
    runtime, _, options = runtime.partition(":")
    if name == "bare":
        if runtime not in ("", "auto", "bare"):
            raise EnvironmentRefused(f"environment bare: it needs no runtime, leave out @{runtime}")
        return BARE
    from flowos.operations._images._resolve import resolve_image  # not needed for bare

    image, boot = resolve_image(name, digest=digest), None
    if runtime in BOOTING:
        from flowos.model import read_boot  # few environments are booted

        try:
            boot = read_boot(options)
        except EnvironmentRefused as error:
            raise EnvironmentRefused(f"environment {given}: {error}") from None
    return Environment(image=image, runtime=runtime or "auto", boot=boot)


def _check_runtime(word: str, runtime: str) -> None:
    """Raises EnvironmentRefused if there is none of this name, or it takes no options."""
    kind, colon, _ = runtime.partition(":")
    if colon and kind in RUNTIMES and kind not in BOOTING:
        raise EnvironmentRefused(f"environment {word}: {kind} takes nothing behind a colon")
    if kind != "auto" and kind not in RUNTIMES:
        known = ", ".join(("auto", *sorted(RUNTIMES)))
        raise EnvironmentRefused(
            f"environment {word}: unknown runtime {runtime!r}; known are {known}"
        )


def _bind(given: GivenBind) -> tuple[str, str]:
    if isinstance(given, tuple):
        source, target = fspath(given[0]), fspath(given[1])
    else:
        source, _, target = fspath(given).partition(":")
    path, _, mode = target.partition(":")
    inside = path or fspath(Path(source).absolute())
    if not source or mode not in ("", "ro", "rw") or not PurePath(inside).is_absolute():
        raise EnvironmentRefused(
            f"bind {_brief_repr(given)}: expected SRC, SRC:DST or SRC:DST:ro, with DST an "
            "absolute path"
        )
    return fspath(Path(source).absolute()), inside + (":ro" if mode == "ro" else "")


def _device(name: object) -> str:
    if not isinstance(name, str) or "=" not in name or "/" not in name:
        raise EnvironmentRefused(
            f"device {_brief_repr(name)}: expected a CDI name, such as nvidia.com/gpu=0"
        )
    return name


def _variables(given: Mapping[str, str] | Iterable[str]) -> Pairs:
    if isinstance(given, Mapping):
        return tuple((str(name), str(value)) for name, value in given.items())
    pairs = []
    for word in given:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise EnvironmentRefused(f"variable {word!r}: expected NAME=VALUE")
        pairs.append((name, value))
    return tuple(pairs)
