"""Programs that people watch their runs with, filled from a finished run's table of epochs."""
