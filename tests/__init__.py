"""Tests: one file per subject, with independent oracles and reviewable golden files."""
