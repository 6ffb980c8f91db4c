"""Documents in a PostgreSQL database, by psycopg alone."""
