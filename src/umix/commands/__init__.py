"""The commands, one per file; they import what is slow to import only when they run."""
