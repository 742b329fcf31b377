"""Which class reads what lies at a URL: s3, gs, az, http, https by obstore, others by fsspec."""

from flowos.feeder._fsspec import FileSystem
from flowos.feeder._interfaces import Storage
from flowos.feeder._object_clouds import CLOUD_OF
from flowos.feeder._obstore import Bucket
from flowos.feeder._url import Url


def open_storage(url: Url, timeout_seconds: float = 30.0) -> Storage:
    """timeout_seconds: for a connection, and for the next bytes of an answer; obstore's alone."""
    return Bucket(url, timeout_seconds) if url.scheme in CLOUD_OF else FileSystem(url)
