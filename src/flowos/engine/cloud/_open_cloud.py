"""From a table of flowos.toml to its cloud: the files that the table names are read here."""

import stat
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from flowos.engine.cloud._ec2_cloud import Ec2Cloud
from flowos.engine.cloud._fake_cloud import FakeCloud
from flowos.engine.cloud._machines import Machines, PatientMachines
from flowos.model import Cloud, CloudError

_KEYS = {"key", "secret", "token"}


def open_cloud(cloud: Cloud) -> Machines:
    """The cloud of a table. Raises CloudError if a file that it names is of no use."""
    user_data = _text(cloud, "user_data") if cloud.user_data else ""
    return PatientMachines(_CLOUDS[cloud.driver](cloud, user_data), cloud.answer_seconds)


def _ec2(cloud: Cloud, user_data: str) -> Machines:
    return Ec2Cloud(cloud, user_data, _credentials(cloud) if cloud.credentials else {})


_CLOUDS: Mapping[str, Callable[[Cloud, str], Machines]] = {"ec2": _ec2, "fake": FakeCloud}
"""Driver -> its machines, from the table and the text of `user_data`."""


def _text(cloud: Cloud, key: str) -> str:
    try:
        return Path(getattr(cloud, key)).read_text(encoding="utf-8")
    except OSError as error:
        raise _refused(cloud, key, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _refused(cloud, key, "is no UTF-8 text") from None


def _credentials(cloud: Cloud) -> dict[str, str]:
    """No word of the file is ever shown."""
    text = _text(cloud, "credentials")
    if Path(cloud.credentials).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise _refused(cloud, "credentials", "is open to others; mend: chmod 600")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise _refused(cloud, "credentials", "is no TOML") from None
    if not {"key", "secret"} <= set(found) <= _KEYS or not all(
        isinstance(value, str) for value in found.values()
    ):
        raise _refused(cloud, "credentials", "has to have texts `key`, `secret` and maybe `token`")
    return found


def _refused(cloud: Cloud, key: str, why: str) -> CloudError:
    return CloudError(f"cloud.{cloud.name}.{key}: {getattr(cloud, key)} {why}")
