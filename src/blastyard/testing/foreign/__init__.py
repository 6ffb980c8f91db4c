"""Programs that submit BLAST to the same namespace and are no blastyards.

They follow the wire contract that such programs share (a submit Lease, a count of finalizers), and
know nothing of blastyard: nothing of its admission is imported here, so that they judge it from
outside. ``python -m blastyard.testing.foreign --help`` runs one as a process of its own.
"""
