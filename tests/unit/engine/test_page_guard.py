"""Which requests the server of pages answers, and with which headers."""

import pytest

from flowos.engine import PageAnswer, PageRequest
from flowos.engine._page_guard import POLICY, PageKeys, admitted, headers_of, plain, refused

KEYS = PageKeys(token="to-ken", session="sess_ion", cookie="flowos-1")
COOKIE = ["other=1; flowos-1=sess_ion"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]:99", " localhost "]
)
def test_our_own_names_are_answered_to_by_any_port(host: str) -> None:
    assert refused([host]) is None


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [""],
        ["evil.example"],
        ["127.0.0.1.evil.example"],
        ["evil.example:127.0.0.1"],
        ["localhost@evil.example"],
        ["0.0.0.0:80"],
        ["127.0.0.1:123456"],
        ["localhost\n.evil.example"],
        ["localhost", "localhost"],
    ],
)
def test_requests_for_other_hosts_are_refused(hosts: list[str]) -> None:
    answer = refused(hosts)
    assert answer is not None
    assert answer.status == 421


def test_a_cookie_admits_and_the_address_is_split() -> None:
    request = admitted("/runs/a%2Fb?page=2&x=", COOKIE, KEYS)
    assert request == PageRequest(path="/runs/a%2Fb", query=(("page", "2"), ("x", "")))


@pytest.mark.parametrize(
    "cookies",
    [
        ["flowos-1=sess_ion"],
        ["a=1", "flowos-1=sess_ion"],
        ["flowos-1=old; flowos-1=sess_ion"],
        ['_xsrf=2|1:0|"; a[b]={"c": 1}; \x00; flowos-1 = sess_ion ;'],
    ],
)
def test_cookies_of_other_servers_do_not_hide_ours(cookies: list[str]) -> None:
    assert isinstance(admitted("/", cookies, KEYS), PageRequest)


@pytest.mark.parametrize(
    "cookies",
    [
        [],
        [""],
        ["flowos-1="],
        ["flowos-1=to-ken"],
        ["flowos-1=sess_io"],
        ["flowos-2=sess_ion"],
        ["flowos-1=s\u00e9ss"],
        ["\x00[=;;"],
    ],
)
def test_without_the_right_cookie_nothing_is_shown(cookies: list[str]) -> None:
    answer = admitted("/", cookies, KEYS)
    assert isinstance(answer, PageAnswer)
    assert answer.status == 403
    assert b"the address that flowos serve printed" in answer.body


@pytest.mark.parametrize("token", ["", "to-ke", "to-ken2", "\u00e9", "%00", "TO-KEN"])
def test_a_wrong_token_is_none(token: str) -> None:
    answer = admitted(f"/?token={token}", [], KEYS)
    assert isinstance(answer, PageAnswer)
    assert answer.status == 403


@pytest.mark.parametrize("target", ["/?token=to-ken", "//evil.example/?a=1&token=to-ken"])
def test_the_token_becomes_a_cookie_and_leaves_the_address(target: str) -> None:
    answer = admitted(target, [], KEYS)
    assert isinstance(answer, PageAnswer)
    headers = dict(headers_of(answer))
    assert (answer.status, headers["Location"]) == (303, "/")
    assert headers["Set-Cookie"] == "flowos-1=sess_ion; Path=/; HttpOnly; SameSite=Strict"
    assert "to-ken" not in repr(answer)


def test_whoever_comes_from_another_site_is_led_on_by_our_own_page() -> None:
    answer = admitted("/?token=to-ken", [], KEYS, from_elsewhere=True)
    assert isinstance(answer, PageAnswer)
    assert (answer.status, dict(answer.headers)["Refresh"]) == (200, "0; url=/")


@pytest.mark.parametrize("target", ["//[", "/?" + "&".join(["a=b"] * 50)])
def test_an_address_that_cannot_be_read_is_said(target: str) -> None:
    answer = admitted(target, COOKIE, KEYS)
    assert isinstance(answer, PageAnswer)
    assert answer.status == 400


def test_every_answer_forbids_other_scripts_frames_and_copies() -> None:
    headers = dict(headers_of(plain(404, "no")))
    assert headers["Content-Security-Policy"] == POLICY
    assert "default-src 'none'" in POLICY
    assert "unsafe-inline" not in POLICY.partition("style-src")[0]
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Content-Length"] == "3"
    assert "ETag" not in headers


def test_what_has_not_changed_is_answered_without_a_body() -> None:
    headers = dict(headers_of(PageAnswer(status=304, version="abc")))
    assert headers["ETag"] == '"abc"'
    assert not {"Content-Type", "Content-Length"} & {*headers}
