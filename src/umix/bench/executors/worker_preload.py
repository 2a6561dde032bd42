"""Importing this module imports everything that a worker needs.

The fork server of ``processes`` imports it once, and all workers are forks of that server. Nothing
here may start a thread, because threads do not survive a fork.
"""

import ctypes
import signal

_SIGNAL_OF_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG of prctl(2)

in_server = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())  # blocked by Processes
if in_server:
    # The imports take seconds: until then the server ends at once, and without a traceback, by Ctrl-C or with its parent.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

from umix.bench.executors.execute_one import warm_up  # noqa: E402

warm_up(threads=1)
if in_server:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what forks inherit; the server itself ignores Ctrl-C
    ctypes.CDLL(None).prctl(_SIGNAL_OF_PARENTS_DEATH, 0)
