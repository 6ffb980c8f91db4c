"""A kubeconfig file: which server, trusted by which certificate, as whom."""

from __future__ import annotations

import base64

import msgspec

CONTEXT = "blastyard"


def kubeconfig(
    url: str, certificate: bytes, token: str, namespace: str = "default", context: str = CONTEXT
) -> bytes:
    """The file's content. It is JSON, which is YAML too, and needs no other file beside it."""
    authority = base64.b64encode(certificate).decode()
    cluster = {"server": url, "certificate-authority-data": authority}
    parts = {"cluster": context, "user": context, "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": context, "user": {"token": token}}],
        "contexts": [{"name": context, "context": parts}],
        "current-context": context,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
