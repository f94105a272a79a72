"""The benchmark card of an agent or a trainer."""
