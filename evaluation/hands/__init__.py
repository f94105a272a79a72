"""Hands of a finished match, dealt and played again."""
