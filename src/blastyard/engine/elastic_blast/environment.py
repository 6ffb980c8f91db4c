"""What the submit command is told by its environment.

Little of the caller's: what finds programs and libraries, the way through a proxy, and what the
clouds' own tools read. The account's home is another one for each run, so the places of their
credentials are named where they are in the caller's home.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from blastyard.engine.elastic_blast.folder import SubmitFolder
from blastyard.engine.elastic_blast.name import ClusterName

SEARCH_ID: Final = "BLASTYARD_SEARCH_ID"
"""The id to submit under, as every submit command behind the gates finds it."""

_ALL = """
    PATH LANG LC_ALL TZ USER LOGNAME LD_LIBRARY_PATH
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE BOTO_CONFIG
    KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT
    http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY
"""
_PASSED: Final = frozenset(_ALL.split())
_PASSED_FAMILIES: Final = (
    "AAD_", "AWS_", "AZCOPY_", "AZURE_", "CLOUDSDK_", "ELB_", "GOOGLE_", "IDENTITY_", "MSI_",
)  # fmt: skip
_REFUSED: Final = frozenset({"ELB_RESULTS"})
"""It would take the place of what stands in the configuration file, for all searches alike."""
_PLACES: Final = {
    "AWS_CONFIG_FILE": ".aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": ".aws/credentials",
    "AZURE_CONFIG_DIR": ".azure",
    "BOTO_CONFIG": ".boto",
    "CLOUDSDK_CONFIG": ".config/gcloud",
}
"""Where the clouds' tools keep who is logged in, below the account's home."""


def command_environment(
    caller: Mapping[str, str], folder: SubmitFolder, name: ClusterName
) -> dict[str, str]:
    """The whole environment of the command; ``caller`` is this process's."""
    home = caller.get("HOME")
    places = {key: Path(home, place) for key, place in _PLACES.items()} if home else {}
    return {
        **{key: str(place) for key, place in places.items() if place.exists()},
        **{key: value for key, value in caller.items() if _is_passed(key)},
        "HOME": str(folder.home),
        "KUBECONFIG": str(folder.kubeconfig),
        "TMPDIR": str(folder.temporary),
        # what it says must not be lost when it is killed
        "PYTHONUNBUFFERED": "1",
        # as everywhere here, nobody is told who searches for what
        "BLAST_USAGE_REPORT": "false",
        SEARCH_ID: name.id,
    }


def _is_passed(key: str) -> bool:
    return (key in _PASSED or key.startswith(_PASSED_FAMILIES)) and key not in _REFUSED
