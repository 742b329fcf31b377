"""`flowos.toml`: where it is searched, what counts before it, and its contents.

Loads nothing that others do not need.
"""

import os
from collections.abc import Sequence
from os.path import isfile, lexists
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from flowos._dataclasses import replace
from flowos._user_folders import HomeFolderError, config_folder
from flowos.model import (
    Settings,
    SettingsError,
    SettingsLayer,
    UsageError,
    file_layer,
    merged,
    options_layer,
    read_layers,
    variables_layer,
)

NAME = "flowos.toml"
SET = "FLOWOS_SET"
"""What `flowos --set` was given, each in a line: processes that a command starts know it too."""


def settings_files() -> tuple[Path, ...]:
    """Those that are used, each counts before those before it: one's own, the folder's; or the one
    that FLOWOS_CONFIG names, none if it is /dev/null. Raises SettingsError if such a name is of
    something else."""
    if (named := os.environ.get("FLOWOS_CONFIG", "")) == os.devnull:
        return ()
    if named:
        _check_named(Path(named))
        return (Path(named),)
    return tuple(file for file in (*_own_file(), Path(NAME)) if _is_there(file))


def settings_names() -> str:
    """Of the files, for a message; "" without one."""
    return " and ".join(map(str, reversed(settings_files())))


def _is_there(file: Path) -> bool:
    try:
        file.lstat()
    except PermissionError as error:
        if lexists(file.parent):  # else a home that is another user's, as by sudo
            raise SettingsError(f"{file}: cannot be read: {error.strerror}") from None
        return False
    except OSError:
        return False
    if not isfile(file):  # noqa: PTH113 - which never fails
        raise SettingsError(f"{file}: it is no file that can be read: rename or remove it")
    return True


def _check_named(file: Path) -> None:
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        raise SettingsError(f"FLOWOS_CONFIG={file}: there is no such file; name {NAME}") from None
    except OSError as error:
        raise SettingsError(f"FLOWOS_CONFIG={file}: {error.strerror}") from None
    if not S_ISREG(mode):
        name = file / NAME if S_ISDIR(mode) else NAME
        raise SettingsError(f"FLOWOS_CONFIG={file}: it is no file; name one, as {name}")


def settings_layers(*, options: bool = True) -> tuple[SettingsLayer, ...]:
    """Of files, of FLOWOS_* variables, of `flowos --set`: each counts before those before it.

    options: with the last of them.
    """
    files = merged([file_layer(_text(file), str(file)) for file in settings_files()])
    given = options_layer(_options() if options else ())
    return files, variables_layer(os.environ, files), given


def use_options(given: Sequence[str]) -> None:
    """What `flowos --set` was given counts from now on, after what it was given before.

    Raises UsageError for a mistake in it, SettingsError for one without it.
    """
    for option in given:
        if len(f"{option}.".splitlines()) > 1:
            raise UsageError(f"--set {option!r:.80}: it has a line break; write it in one line")
    os.environ[SET] = "".join(f"{option}\n" for option in (*_options(), *given))
    try:
        load_settings()
    except SettingsError as error:
        load_settings(options=False)
        raise UsageError(str(error)) from error


def load_settings(*, options: bool = True) -> Settings:
    """The settings, or the defaults. Raises SettingsError for a mistake in them.

    A pool whose nodes are of a known size has the price of that size, if it says none itself.
    options: with those of `flowos --set`.
    """
    layers = settings_layers(options=options)
    found = read_layers(layers)
    if not any(pool.size for pool in found.pools):
        return found
    from flowos.operations.vm_sizes import with_its_price  # most programs need no catalogue

    said = merged(layers)
    pools = tuple(with_its_price(pool, found.sizes, said) for pool in found.pools)
    return replace(found, pools=pools)


def _options() -> list[str]:
    return os.environ.get(SET, "").splitlines()


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")  # some editors begin with its mark
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: it is no UTF-8 text (byte {error.start})") from error


def _own_file() -> tuple[Path, ...]:
    """() without a home folder."""
    try:
        return (config_folder() / NAME,)
    except HomeFolderError:
        return ()
