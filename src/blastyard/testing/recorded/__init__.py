"""What really happened in a namespace, recorded from outside, and judged by nobody's own rules.

A recording is a directory of JSON lines: what the API server's objects became, in the server's own
order (``recorder``), and what the processes say they did (``deed``). ``verdict.check`` reads it and
says what must not have happened. Nothing of the product's admission is imported here: a mistake in
a rule must not be repeated by who judges it.
"""
