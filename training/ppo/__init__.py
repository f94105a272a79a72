"""Proximal policy optimisation by self-play."""
