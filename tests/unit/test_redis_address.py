"""Where a Redis is: what may stand in its URL, and what is never shown of it."""

from __future__ import annotations

import pytest
from redis import connection

from blastyard.admission.redis.address import Address
from blastyard.domain.errors import Misconfigured

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("url", "place", "options"),
    [
        ("redis://h", "h:6379, database 0", {"host": "h", "port": 6379, "db": 0}),
        ("redis://h:1/", "h:1, database 0", {"host": "h", "port": 1, "db": 0}),
        ("redis://h/7", "h:6379, database 7", {"host": "h", "port": 6379, "db": 7}),
        ("redis://h/7?db=8", "h:6379, database 8", {"host": "h", "port": 6379, "db": 8}),
        ("redis://[::1]:2", "[::1]:2, database 0", {"host": "::1", "port": 2, "db": 0}),
        ("unix:///run/r.sock", "/run/r.sock, database 0", {"path": "/run/r.sock", "db": 0}),
        ("unix:///r.sock?db=3", "/r.sock, database 3", {"path": "/r.sock", "db": 3}),
    ],
)
def test_a_url_says_where(url: str, place: str, options: dict[str, object]) -> None:
    address = Address.parse(url)

    assert (address.place, address.options) == (place, options)
    assert str(address) == f"The Redis at {place}"


def test_user_and_password_are_taken_as_they_are_meant() -> None:
    address = Address.parse("redis://lab%40home:a%2Fb%3Ac%23d%25@h")

    assert address.options["username"] == "lab@home"
    assert address.options["password"] == "a/b:c#d%"
    assert Address.parse("unix://:pw@/run/r.sock").options["password"] == "pw"


def test_a_secure_connection_is_checked_against_the_given_certificates() -> None:
    address = Address.parse("rediss://h:6380/0?ssl_ca_certs=/etc/ca.pem&ssl_cert_reqs=required")

    assert address.kind is connection.SSLConnection
    assert address.options["ssl_ca_certs"] == "/etc/ca.pem"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "does not begin with"),
        ("localhost:6379", "does not begin with"),
        (f"http://:{SECRET}@h", "does not begin with"),
        (f"redis://:{SECRET}@", "names no host"),
        (f"redis://:{SECRET}@{'a' * 64}", "names no host"),
        (f"redis://:{SECRET}/x@h:6379", "is not a URL"),
        (f"redis://:{SECRET}#x@h", "is not a URL"),
        (f"redis://:{SECRET}@h:port", "is not a URL"),
        (f"redis://:{SECRET}@h:99999", "is not a URL"),
        (f"redis://:{SECRET}@[h", "is not a URL"),
        (f"redis://:{SECRET}@h/#x", "has a #"),
        (f"redis://:{SECRET}@h/name", "not a number"),
        (f"redis://:{SECRET}@h/-1", "not a number"),
        (f"redis://:{SECRET}@h?socket_timeout=60", "none of: db"),
        (f"redis://:{SECRET}@h?db=x", "none of: db"),
        (f"redis://h?password={SECRET}", "none of: db"),
        (f"redis://:{SECRET}@h?ssl_ca_certs=/etc/ca.pem", "none of: db"),
        ("unix://run/r.sock", "names no socket"),
        ("unix://", "names no socket"),
    ],
)
def test_what_is_no_address_is_refused_with_an_example_and_never_quoted(
    url: str, said: str
) -> None:
    with pytest.raises(Misconfigured) as caught:
        Address.parse(url)

    error = caught.value
    assert error.code == "settings_invalid"
    assert said in error.message
    assert "BLASTYARD_REDIS_URL=redis://:PASSWORD@" in error.next_step
    assert SECRET not in f"{error.message}{error.next_step}{error!r}"
    assert error.__suppress_context__ or error.__context__ is None


def test_printing_an_address_shows_no_secret() -> None:
    address = Address.parse(f"redis://lab:{SECRET}%2Fx@h")

    for text in (str(address), repr(address), address.place):
        assert SECRET not in text
    assert address.redacted(f"AUTH {SECRET}/x failed, {SECRET}%2Fx") == "AUTH *** failed, ***"
