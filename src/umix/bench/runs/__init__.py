"""One run: execution, its folder, its record, its lock."""
