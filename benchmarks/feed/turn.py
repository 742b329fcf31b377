"""`python turn.py JOB`, a Job as JSON: one turn of one contestant, in a process of its own.

Prints one line of JSON and exits 0, or 1 with the reason.
"""

import ctypes
import json
import os
import signal
import sys

from job import Job, run

PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # ends with its parent
    print(json.dumps(run(Job(**json.loads(sys.argv[1])))), flush=True)
    os._exit(0)  # does not wait for workers; the parent ends them
