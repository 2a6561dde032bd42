"""Importing this module imports everything that a worker needs.

The fork server of ``processes`` imports it once, and all workers are forks of that server. Nothing
here may start a thread, because threads do not survive a fork.
"""

from umix.bench.executors.execute_one import warm_up

warm_up(threads=1)
