"""The PostgreSQL server of an installation: where it is, how it is spoken to, what its errors mean.

Everything that is true of the server itself, whoever uses it, stands here: the document store
speaks to it by psycopg alone, the search store through SQLAlchemy, both over a
:class:`~blastyard.postgres.session.Session`.
"""
