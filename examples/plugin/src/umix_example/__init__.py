"""An example of a package that adds a method, a task and a net to umix."""
