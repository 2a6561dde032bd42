"""Runs as values: a spec says everything that decides the numbers, executing it gives a record."""
