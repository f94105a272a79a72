"""Duplicate matches: every deal is played twice with seats swapped."""
