"""What commands there are: help shows them without loading what they import."""

FAILED, USAGE, NOT_KEPT, NOT_STARTED, CLOSED_PIPE = 1, 2, 3, 125, 141
"""Exit codes. All are in `_exit_codes.py`, with their words, which only help needs."""

COMMANDS = {
    "measure": "measure this machine, every part against its ceiling, or a command of yours",
    "list": "the runs that are kept, newest first",
    "show": "a kept run, a process, or the log of a slice's tasks, in the terminal",
    "compare": "the levels of an axis inside a run, a second run next to a first, or two commands",
    "baseline": "what stored runs of a kind of machine give, to check others against it",
    "report": "write the page, CSV, JSON and Markdown of a kept run; of several a page of all",
    "rm": "delete kept runs with all their samples; asks nothing, cannot be undone",
    "doctor": "say what can be measured and used on this machine, and how to mend the rest",
    "exec": "run one command in an environment; its streams, terminal and exit code pass through",
    "shell": "work in an environment: its bash, or else the shell that it has",
    "run": "run a flow of a Python file, or what an image itself is made to run",
    "ps": "the programs that used slices, newest first, those that run too",
    "slice": "slices of pools: why they wait, what they hold, used and cost; free one",
    "serve": "what runs now, timelines and measurements as pages in your browser, for you alone",
    "why": "why a slice, a program or a task of one that runs does not go on, and what would help",
    "results": "results of tasks that are kept: by a journal, or by cache=True; remove old ones",
    "notebook": "JupyterLab on a node of a pool, at one URL that works on this machine",
    "config": "the value of each setting, and where it comes from: file, variable, command line",
    "pools": "where nodes come from, as flowos.toml says",
    "device": "devices of this machine: processors, OpenCL, GPUs, FPGAs; load, verify, reset one",
    "cloud": "machines of a cloud for the nodes that Slurm powers up and down",
    "image": "images: root file systems that work can be started in, each one file in your library",
    "kernel": "kernels with which @qemu boots an image, each from a package of Debian",
    "feed": "training data on this node's own storage: fill, look at, check and remove a cache",
    "completion": "completion of commands, options and names, for bash, zsh and fish",
    "solve": "solve a symmetric positive definite sparse system, and see how its residual falls",
}
"""Each is a module of this room, in the order in which help shows them."""
