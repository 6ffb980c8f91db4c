"""Why a request got no answer, in words for a person."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import httpx2
from lightkube.core.exceptions import ConfigError

from blastyard.domain.errors import BlastyardError, Misconfigured
from blastyard.kube.error import ServerTrouble
from blastyard.kube.wire import Call

CONNECT_SECONDS: Final = 2.0
"""How long a connection may take to be made."""

_EXPIRED: Final = 10  # X509_V_ERR_CERT_HAS_EXPIRED


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and the address it went to."""

    url: str
    call: Call
    seconds: float
    """For how long an answer, or the next piece of it, is waited for."""


class Incomplete(httpx2.ReadTimeout):
    """Pieces of an answer came, one after another, until there was no time left."""


@contextmanager
def translated(asked: Asked) -> Iterator[None]:
    """Raise what went wrong inside as ``ServerTrouble``, or ``Misconfigured`` if it will stay so.

    Headers, tokens and bodies are not in the message.
    """
    try:
        yield
    except (ConfigError, OSError) as error:  # from the files that the credential is read from
        raise Misconfigured(
            "cluster_misconfigured",
            f"the credential for {asked.url} cannot be had: {error}",
            "log in again, or correct the kubeconfig",
        ) from error
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
        raise _failure(asked, error) from error


def _failure(asked: Asked, error: Exception) -> BlastyardError:
    unproven = _unproven(error)
    if unproven is not None:
        why, next_step = unproven
        return Misconfigured("cluster_misconfigured", f"{asked.url}: {why}", next_step)
    return ServerTrouble(
        f"the API server at {asked.url} gave no answer to {asked.call.method} "
        f"{asked.call.path}: {_said(error, asked)}",
        "check that the cluster is up and reachable from here, and try again",
    )


def _unproven(error: BaseException) -> tuple[str, str] | None:
    """What is wrong with the server's certificate, and what to do; ``None`` if it is not that."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return None
    if cause.verify_code == _EXPIRED:
        return (
            "the certificate of the API server has expired",
            "have whoever runs the cluster renew it, and check the clock of this machine",
        )
    return (
        "the certificate of the API server is not of the cluster that the kubeconfig describes "
        f"({cause.verify_message})",
        "fetch the kubeconfig anew: its server and its certificate authority do not go together",
    )


def _said(error: Exception, asked: Asked) -> str:
    match error:
        case httpx2.ConnectTimeout():
            return f"no connection within {min(CONNECT_SECONDS, asked.call.timeout):g} s"
        case httpx2.PoolTimeout():
            return "all connections are in use"
        case Incomplete():
            return f"it was not complete within {asked.seconds:g} s"
        case httpx2.TimeoutException():
            return f"nothing came for {asked.seconds:g} s"
        case _:
            return str(error) or type(error).__name__
