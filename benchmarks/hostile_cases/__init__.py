"""Makers of hostile input, one file for each kind of input."""
