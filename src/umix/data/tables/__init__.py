"""Tables of one's own: columns as inputs."""
