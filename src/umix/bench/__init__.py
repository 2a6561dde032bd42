"""Experiments: a spec has everything that decides the numbers of a run, and executing it gives a record."""
