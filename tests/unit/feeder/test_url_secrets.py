"""What is displayed of a URL names no user, no password and no signature."""

import pytest

from flowos.feeder._url import line_without_secrets, read_url, user_info, without_secrets


@pytest.mark.parametrize(
    ("url", "shown", "user"),
    [
        ("http://host:80/d", "http://host:80/d", ""),
        ("http://user:p@ssw0rd@host:80/d/x@y", "http://host:80/d/x@y", "user:p@ssw0rd"),
        ("http://token@host/d", "http://host/d", "token"),
        ("s3://AK:SE/CR/ET@buck/plain", "s3://buck/plain", "AK:SE/CR/ET"),
        ("s3://buck/by@mail/plain", "s3://buck/by@mail/plain", ""),
        ("http://host:8080/by@mail", "http://host:8080/by@mail", ""),
        ("http://[::1]:8080/by@mail", "http://[::1]:8080/by@mail", ""),
        ("http://me:a?b@host/d", "http://host/d", "me:a?b"),
        ("https://host/d?signed=by@me", "https://host/d", ""),
        ("filecache::sftp://me:pw@host/d", "filecache::sftp://host/d", "me:pw"),
    ],
)
def test_a_url_is_displayed_without_secrets(url: str, shown: str, user: str) -> None:
    assert (without_secrets(url), user_info(url)) == (shown, user)


def test_of_a_line_each_address_is_without_secrets() -> None:
    line = 'at http://me:p@ss@host/x?sign=y: 503, then "s3://AK:S/E@b/c" (hf://u:v@w/?z)'
    assert line_without_secrets(line) == 'at http://host/x 503, then "s3://b/c" (hf://w/)'


def test_schemes_are_of_any_case() -> None:
    assert read_url("HTTP://Host/D/a.tar").root == "http://Host/D"
