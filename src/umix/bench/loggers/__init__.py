"""Loggers: they copy the epochs of a finished run to TensorBoard or MLflow."""
