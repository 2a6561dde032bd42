"""Tasks: splits of examples, what is known of them, and how they become batches."""
