"""Checks of data before training: what ``umix doctor`` reports."""
