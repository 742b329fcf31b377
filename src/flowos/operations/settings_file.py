"""`flowos.toml`: where it is searched, and its contents. Loads nothing that others do not need."""

import os
from dataclasses import replace
from os.path import isfile, lexists
from pathlib import Path
from stat import S_ISREG

from flowos.model import Flow, Settings, SettingsError, read_settings

NAME = "flowos.toml"


def settings_file() -> Path | None:
    """The file that is used. Raises SettingsError if its name is of something else."""
    if named := os.environ.get("FLOWOS_CONFIG", ""):
        _check_named(Path(named))
        return Path(named)
    for file in (Path(NAME), _own_file()):
        if lexists(file):
            if not isfile(file):  # noqa: PTH113 - which never fails
                raise SettingsError(f"{file}: it is no file that can be read: rename or remove it")
            return file
    return None


def _check_named(file: Path) -> None:
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        raise SettingsError(f"FLOWOS_CONFIG={file}: there is no such file; name {NAME}") from None
    except OSError as error:
        raise SettingsError(f"FLOWOS_CONFIG={file}: {error.strerror}") from None
    if not S_ISREG(mode):
        raise SettingsError(f"FLOWOS_CONFIG={file}: it is no file; name one, as {file / NAME}")


def load_settings() -> Settings:
    """The settings of the file, or the defaults. Raises SettingsError for a mistake in it.

    A pool whose nodes are of a known size has the price of that size, if it says none itself.
    """
    file = settings_file()
    if file is None:
        return Settings()
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: it is no UTF-8 text (byte {error.start})") from error
    found = read_settings(text, str(file))
    if not any(pool.size for pool in found.pools):
        return found
    from flowos.operations.vm_sizes import with_its_price  # most programs need no catalogue

    pools = tuple(with_its_price(pool, found.sizes, str(file)) for pool in found.pools)
    return replace(found, pools=pools)


def know_fpgas(flow: Flow | None = None) -> None:
    """Slices on this machine may need those of the settings. Raises SettingsError for a mistake.

    flow: the settings are read only if one of its tasks needs devices.
    """
    from flowos.engine import here  # most commands need no settings of devices
    from flowos.plan import tasks_within

    tasks = () if flow is None else tasks_within(flow)
    if flow is None or any(each.devices for task in tasks for each in task.needs.choices):
        here().know_fpgas(load_settings().fpgas)


def _own_file() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(config) if config.startswith("/") else Path("~/.config").expanduser()
    return base / "flowos" / NAME
