"""Counterfactual regret minimisation over an abstraction."""
