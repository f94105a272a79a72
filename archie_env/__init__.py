"""Archie: heads-up triple-draw poker, split high/low with a qualifier in both directions, as an environment."""
