# fmt: off
# ruff: noqa: E402, I001
"""The program of the FlowOS paper (seed 004, section 3.2), word for word but for two functions."""


def add_scalar_fun(x: int, y: int) -> int:
    return x + y


def sub_scalar_fun(x: int, y: int) -> int:
    return x - y


import flowos as fo
add_scalar_def = {'task_name': "add_scalar",
                  'iport_nametypes': (fo.int64, fo.int64),
                  'oport_nametypes': fo.int64,
                  'fun': add_scalar_fun}
sub_scalar_def = {'task_name': "sub_scalar",
                  'iport_nametypes': (fo.int64, fo.int64),
                  'oport_nametypes': fo.int64,
                  'fun': sub_scalar_fun}
add_scalar = fo.task(add_scalar_def)
sub_scalar = fo.task(sub_scalar_def)
a = fo.flow_input('a', fo.int64)
b = fo.flow_input('b', fo.int64)
c = fo.flow_input('c', fo.int64)
d = sub_scalar(add_scalar(a, b), c)
o = fo.flow_output(d)
s = fo.slice(o)
vs = s.run(1, 2, 3)
print(vs)  # [0]
s.free()
