"""Submits a search to a cluster with the command of ElasticBLAST, and brings its result back.

::

    name            under which id a search goes in the cluster
    configuration   the search's configuration file
    kubeconfig      a kubeconfig of its own for each run, with one context in it
    folder          where an attempt keeps all that
    command         the words of the submit command
    probe           whether the installed command can be told under which id to submit
    environment     what the command is told by its environment
    execution       the command under its guardian, and the end of what it says
    said            its answer, read from the end of its output
    answer          what came of it, told from that and from how it ended
    runner          the parts above, put together
    sight           what carries an id in the namespace, and what that means
    objects         the same, asked for and deleted
    followed        the same, asked for only when something has changed
    location        where results are put
    batch           which files of a location are the result, and whether all are there
    collection      the result, as one file
    engine          all of it, as the port of what outlives its process asks for it
"""
