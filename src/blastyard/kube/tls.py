"""How an API server proves itself, and how a certificate proves us."""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path

from blastyard.kube.kubeconfig import Cluster, User


def context(cluster: Cluster, user: User) -> ssl.SSLContext:
    """The TLS of a cluster and a user of a kubeconfig.

    Raises ``OSError`` and ``ValueError`` for files, base64, certificates and keys that are none.
    """
    authority = _text(cluster.certificate_auth_data, cluster.certificate_auth)
    tls = ssl.create_default_context(cadata=authority)  # the system's authorities without any
    # clusters make authorities of their own that leave out what RFC 5280 asks for
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cluster.insecure:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    certificate = _text(user.client_cert_data, user.client_cert)
    if certificate is not None:
        key = _text(user.client_key_data, user.client_key)
        if key is None:
            raise ValueError("there is a client certificate and no key to it")
        load_pair(tls, certificate, key)
    return tls


def load_pair(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    """Have connections prove us by this certificate and key (PEM). Raises ``ssl.SSLError``."""
    with tempfile.TemporaryDirectory(prefix="blastyard-") as folder:
        file = Path(folder) / "pair.pem"
        file.touch(mode=0o600)
        file.write_text(f"{certificate}\n{key}\n")
        tls.load_cert_chain(file)


def _text(data: str | None, file: str | None) -> str | None:
    if data:
        text = base64.b64decode("".join(data.split()), validate=True).decode()
    elif file:
        text = Path(file).read_text()
    else:
        return None
    if not text.strip():  # which would mean: whatever the system trusts
        raise ValueError("one of them is empty")
    return text
