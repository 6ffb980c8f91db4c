"""Puts an installation together: the only package that names concrete backends.

:mod:`~blastyard.bootstrap.gate` is the short way, for commands that only need admission: it
imports no ORM. :mod:`~blastyard.bootstrap.yard` is the whole.
"""
