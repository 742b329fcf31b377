"""`python turn.py JOB`, a Job as JSON: one turn of one contestant, in a process of its own.

Prints one line of JSON and exits 0, or 1 with the reason.
"""

import json
import os
import sys

from job import Job, run

if __name__ == "__main__":
    print(json.dumps(run(Job(**json.loads(sys.argv[1])))), flush=True)
    os._exit(0)  # workers of some contestants would be waited for; the one who asked ends them
