"""Lower bounds on what a best response wins from a policy."""
