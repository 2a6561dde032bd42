"""Many runs: tasks × methods × seeds."""
