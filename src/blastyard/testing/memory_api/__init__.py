"""A Kubernetes API server in memory, as far as blastyard uses one.

::

    api = MemoryApi(clock.now, clock.monotonic)
    api.send(Call("GET", "/api/v1/namespaces/lab/configmaps/elb-blast-ledger-lab"))

It knows ConfigMaps, Jobs and Leases (with lists, watches, merge patches, preconditions, finalizers
and ``managedFields``), access reviews, and what the Job controllers do. One contract suite
(``blastyard.testing.contract_api``) is passed by this and by a real API server.

What it leaves out: owner references (nothing is collected with its owner), server-side apply,
generated names, lists of past versions, and what is inside pod templates.
"""

from blastyard.testing.memory_api.feed import Signal
from blastyard.testing.memory_api.service import Client, MemoryApi

__all__ = ["Client", "MemoryApi", "Signal"]
