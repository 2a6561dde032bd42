"""Hyperparameter search on validation, by Optuna."""
