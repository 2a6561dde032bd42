"""What all kinds of one's own data share: tables on disk, column roles, splits, readers of new data."""
