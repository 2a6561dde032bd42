"""The mathematics: tensors in, tensors out; no files, no global random state, nothing else of umix."""
