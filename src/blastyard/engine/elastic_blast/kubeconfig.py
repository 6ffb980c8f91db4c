"""A kubeconfig for one run of the submit command.

ElasticBLAST rewrites the kubeconfig it finds, and applies to the namespace of its current context.
So each run gets a file of its own, with one context, which is the current one and names the
namespace. It is JSON, which is YAML too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from blastyard.domain.errors import Misconfigured
from blastyard.kube.config import SERVICE_ACCOUNT, Target

CONTEXT: Final = "blastyard"
"""The context's name where there was no kubeconfig, as in a pod."""

_CLUSTER_FILES: Final = ("certificate-authority",)
_USER_FILES: Final = ("client-certificate", "client-key", "tokenFile")
_NEXT: Final = "look at it with `kubectl config view`, or name another with KUBECONFIG"

Entry = dict[str, Any]


def own_kubeconfig(target: Target, service_account: Path = SERVICE_ACCOUNT) -> bytes:
    """The content of the file. Raises ``Misconfigured`` when what it is made of is gone."""
    if target.kubeconfig:
        cluster, user = _chosen(target)
    else:
        cluster = {
            "server": target.endpoint.url,
            "certificate-authority": str(service_account / "ca.crt"),
        }
        user = {"tokenFile": str(service_account / "token")}
    name = context_name(target)
    parts = {"cluster": name, "user": name, "namespace": target.namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": parts}],
        "current-context": name,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def context_name(target: Target) -> str:
    """The one context of the file."""
    return target.context or CONTEXT


def _chosen(target: Target) -> tuple[Entry, Entry]:
    """Cluster and user of the context. As for ``kubectl``, the first file that names one counts,
    and paths are relative to the file that they stand in."""
    files = [(file, _read(file)) for file in target.kubeconfig]
    _, context = _named(files, "contexts", "context", target.context)
    where, cluster = _named(files, "clusters", "cluster", str(context.get("cluster")))
    cluster = _placed(cluster, _CLUSTER_FILES, where)
    if not context.get("user"):
        return cluster, {}
    where, user = _named(files, "users", "user", str(context["user"]))
    user = _placed(user, _USER_FILES, where)
    command = user.get("exec")
    if isinstance(command, dict) and "/" in str(command.get("command")):
        user["exec"] = _placed(command, ("command",), where)
    return cluster, user


def _named(
    files: Sequence[tuple[Path, Entry]], plural: str, singular: str, name: str
) -> tuple[Path, Entry]:
    for file, said in files:
        for entry in said.get(plural) or ():
            if isinstance(entry, dict) and entry.get("name") == name:
                found = entry.get(singular)
                return file, dict(found) if isinstance(found, dict) else {}
    names = ", ".join(str(file) for file, _ in files)
    message = f"the kubeconfig {names} has no {singular} {name!r} any more"
    raise Misconfigured("cluster_misconfigured", message, _NEXT)


def _placed(entry: Entry, keys: Sequence[str], file: Path) -> Entry:
    folder = file.absolute().parent
    return entry | {key: str(folder / entry[key]) for key in keys if entry.get(key)}


def _read(file: Path) -> Entry:
    try:
        said = msgspec.yaml.decode(file.read_bytes(), type=Entry)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"the kubeconfig {file} cannot be read: {error}"
        raise Misconfigured("cluster_misconfigured", message, _NEXT) from error
    return said
