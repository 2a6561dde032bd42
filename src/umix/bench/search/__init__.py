"""Hyperparameter search on the validation split, with Optuna."""
