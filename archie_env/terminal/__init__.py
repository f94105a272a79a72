"""The ``archie`` command."""
