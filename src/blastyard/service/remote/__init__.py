"""Searches that are handed to a cluster, where their work outlives every process of ours.

::

    errand      from a stored search to what is handed over
    attempt     one attempt: Gate A, a run slot, the submit command, and out again
    submission  what happens inside Gate A while the command runs, and after it
    trouble     what sends a search back to the queue, or ends it
    advance     one step of one search
    sweep       what dead processes left is looked after by others, and not run again
    handover    the same, by a process that ends in good order
"""
