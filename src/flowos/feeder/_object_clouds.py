"""Whose objects a URL is of, by its scheme: what obstore opens, and which variables it reads."""

from collections.abc import Mapping

from flowos._dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ObjectCloud:
    """Of obstore's variables in the environment: how their names begin, and which they are.

    keys: of credentials. public: how one does without. addresses: of a store of one's own.
    """

    prefix: str
    keys: str
    public: str
    addresses: tuple[str, ...]


_AWS = ObjectCloud(
    prefix="AWS_",
    keys="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    public="AWS_SKIP_SIGNATURE=true",
    addresses=("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
)
_AZURE = ObjectCloud(
    prefix="AZURE_",
    keys="AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    public="AZURE_SKIP_SIGNATURE=true",
    addresses=("AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"),
)
_GOOGLE = ObjectCloud(
    prefix="GOOGLE_",
    keys="GOOGLE_APPLICATION_CREDENTIALS",
    public="GOOGLE_SKIP_SIGNATURE=true",
    addresses=("GOOGLE_BASE_URL",),
)

CLOUD_OF: Mapping[str, ObjectCloud | None] = {
    "s3": _AWS,
    "s3a": _AWS,
    "gs": _GOOGLE,
    "az": _AZURE,
    "azure": _AZURE,
    "adl": _AZURE,
    "abfs": _AZURE,
    "abfss": _AZURE,
    "http": None,
    "https": None,
}
"""Each scheme that obstore opens; None: of a web server."""

WEB = tuple(scheme for scheme, cloud in CLOUD_OF.items() if cloud is None)
PREFIXES = tuple({cloud.prefix: None for cloud in CLOUD_OF.values() if cloud})
