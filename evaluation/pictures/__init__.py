"""Charts of how a policy plays, and learning curves."""
