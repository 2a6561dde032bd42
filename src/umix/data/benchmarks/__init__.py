"""The published benchmarks and the embedded tasks, one file per data set."""
