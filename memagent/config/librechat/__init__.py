"""LibreChat's own judgement of its configuration file, version 1.3.17: the schema as a table, split by section.

`verdict` is the way in; the sections only describe.
"""
