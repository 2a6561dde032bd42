"""The commands, one per file. Slow imports happen inside the commands, when they run."""
