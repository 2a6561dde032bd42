"""The mathematics as pure functions of tensors and arrays: no files, no global random state, no other part of umix."""
