"""Loggers: they copy the result and the epochs of a finished run to TensorBoard or MLflow."""
