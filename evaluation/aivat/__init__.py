"""Duplicate matches adjusted for luck."""
