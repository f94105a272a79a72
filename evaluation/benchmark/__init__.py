"""The benchmark card of a player or a trainer."""
