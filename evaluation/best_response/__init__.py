"""Lower bounds on the winnings of a best response to a policy."""
