"""UMIX in a training loop of one's own: an index for every example, weighted mixup as a loss, rates of groups."""
