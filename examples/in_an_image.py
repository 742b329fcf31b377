"""The same flow on this machine and in an image: python examples/in_an_image.py IMAGE[@RUNTIME]

The image has a Python of the same minor version as this one, and need not have FlowOS.
"""

import sys

import flowos as fo


@fo.task
def system(_: fo.int64) -> fo.str_:
    import platform

    return platform.freedesktop_os_release()["ID"]


count_libraries = fo.command(["sh", "-c", "ls /usr/lib | wc -l"], name="count", stdout="lines")

if {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__)
    sys.exit()

flow = fo.flow_output(system(fo.flow_input("n", fo.int64)), count_libraries())

for env in (None, *sys.argv[1:]):
    with fo.slice(flow, env) as s:
        name, lines = s.run(1)
        print(f"{env or 'bare'}: {name}, {str(lines).strip()} files in /usr/lib")
