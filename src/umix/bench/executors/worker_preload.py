"""Imported for its effect: a process that has imported this executes runs without further delay.

The server of ``processes`` imports it once, and all workers are forks of it. Nothing here may start a thread: threads do not
survive a fork.
"""

from umix.bench.executors.attempt import warm_up

warm_up(threads=1)
