"""A trained model on labelled new data: rates by group, what has moved since training, and which inputs matter."""
