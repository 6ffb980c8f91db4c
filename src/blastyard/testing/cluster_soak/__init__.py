"""Blastyards, foreign programs and faults as real processes against a real API server.

A seed decides who submits what and what goes wrong when (``plan``); the processes and faults are
real (``actor``, ``fault``), and so is the time they take. Everything that happens is recorded from
outside and judged by :mod:`blastyard.testing.recorded`; afterwards nothing may be left over.
"""
