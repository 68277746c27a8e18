"""Runs a program that dies with its parent: ``python tether.py PARENT_PID PROGRAM [ARGUMENT ...]``.

The kernel sends the signal (prctl(2), PR_SET_PDEATHSIG), so that it comes also when the parent is killed by SIGKILL.
A program of its own, since code between fork and exec is not safe in a process with threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit(f"{sys.argv[2]}: {error.strerror}")
