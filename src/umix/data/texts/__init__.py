"""Texts of one's own: token ids or word features as inputs."""
