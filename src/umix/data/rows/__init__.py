"""What rows of one's own data share, whatever their inputs are: tables on disk, column roles, splits, readers of new data."""
