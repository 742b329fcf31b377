"""Each scheme has the variables of the cloud that obstore opens it by."""

import re

import pytest

from flowos.feeder._object_clouds import CLOUD_OF, PREFIXES, WEB
from flowos.feeder._object_errors import reason
from flowos.feeder._open_storage import open_storage
from flowos.feeder._url import read_url
from flowos.model import FeedError

PREFIX = {"s3": "AWS_", "gcs": "GOOGLE_", "azure": "AZURE_", "http": ""}
"""Of the names that obstore has for its stores."""


@pytest.mark.parametrize("scheme", CLOUD_OF)
def test_a_scheme_has_the_variables_of_the_store_that_obstore_takes_for_it(scheme: str) -> None:
    obstore = pytest.importorskip("obstore", reason="obstore is not installed")
    cloud = CLOUD_OF[scheme]
    prefix = PREFIX[obstore.parse_scheme(f"{scheme}://b/x")]
    assert (cloud.prefix if cloud else "") == prefix
    if cloud:
        assert all(name.startswith(prefix) for name in (cloud.public, *cloud.addresses))


def test_a_web_server_is_no_cloud() -> None:
    assert WEB == ("http", "https")
    assert set(PREFIXES) == {prefix for prefix in PREFIX.values() if prefix}


@pytest.mark.parametrize(
    ("scheme", "variable"),
    [(scheme, name) for scheme, cloud in CLOUD_OF.items() if cloud for name in cloud.addresses],
)
def test_each_address_of_its_cloud_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, scheme: str, variable: str
) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    for cloud in filter(None, CLOUD_OF.values()):
        for name in cloud.addresses:
            monkeypatch.setenv(name, "nowhere")
    ours = CLOUD_OF[scheme]
    assert ours is not None
    for name in ours.addresses:
        if name != variable:
            monkeypatch.delenv(name)
    said = f"{scheme}://b/x: {variable}='nowhere' is no address such as https://host:9000; mend it"
    with pytest.raises(FeedError, match=f"^{re.escape(said)}$"):
        open_storage(read_url(f"{scheme}://b/x"))


@pytest.mark.parametrize("scheme", CLOUD_OF)
def test_what_is_denied_names_the_keys_of_its_cloud(scheme: str) -> None:
    errors = pytest.importorskip("obstore.exceptions", reason="obstore is not installed")
    cloud = CLOUD_OF[scheme]
    said = f": check {cloud.keys}, or set {cloud.public} for what is public to all" if cloud else ""
    denied = errors.PermissionDeniedError("the server says no")
    assert reason(denied, scheme, 1.0, 0.0) == f"access denied{said}"
