"""A hand as text and as a picture, made from a `View` and nothing else."""
