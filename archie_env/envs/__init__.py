"""The interfaces to one engine: PettingZoo, Gymnasium single and vector, and the learner's side of a batch."""
