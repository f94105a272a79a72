"""Checks on demand, for hours: ``make soak``."""
