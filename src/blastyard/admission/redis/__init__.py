"""Documents in one Redis, for all submitters that share it.

* :mod:`~blastyard.admission.redis.address` – where the server is
* :mod:`~blastyard.admission.redis.failure` – what its errors mean
* :mod:`~blastyard.admission.redis.script` – what it does for us in one step
* :mod:`~blastyard.admission.redis.line` – asking it, once and never twice
* :mod:`~blastyard.admission.redis.watch` – hearing what changes
* :mod:`~blastyard.admission.redis.documents` – the store
"""
