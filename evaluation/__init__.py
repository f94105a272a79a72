"""How good the players are: duplicate matches and what they prove."""
