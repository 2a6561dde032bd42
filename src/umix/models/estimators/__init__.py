"""Learners that are no nets: boosted trees of four libraries, and any estimator with ``fit`` and ``predict_proba``."""
