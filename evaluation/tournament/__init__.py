"""Round robins of duplicate matches, with rankings and ratings."""
