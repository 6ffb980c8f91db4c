"""A simulated cluster: many installations, foreign programs and one API server, in virtual time.

The code under test is the real one, from the gate down to the verbs of the API; below them are a
wire that makes calls fail and an API server in memory. See :mod:`blastyard.testing.simulator` for
the machine's simulation, whose scheduler, actors and invariants this one shares.
"""
