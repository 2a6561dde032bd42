"""What the commands do, as functions: ``umix.train``, ``run_study``, ``tune``, ``predict`` and ``report``."""
