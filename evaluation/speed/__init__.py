"""Decisions per second of this environment and of its peers."""
