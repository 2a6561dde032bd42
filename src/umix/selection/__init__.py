"""One way to choose: candidates are trained by successive halving, scored on validation, and the best one is trained as a run."""
