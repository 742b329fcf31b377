"""A flow used as a task of another, twice, on worker threads."""

import flowos as fo


@fo.task
def add(x: fo.float64, y: fo.float64) -> fo.float64:
    return x + y


@fo.task
def multiply(x: fo.float64, y: fo.float64) -> fo.float64:
    return x * y


x = fo.flow_input("x", fo.float64)
y = fo.flow_input("y", fo.float64)
squares = fo.flow_output(add(multiply(x, x), multiply(y, y)), name="squares")

p = fo.flow_input("p", fo.float64)
q = fo.flow_input("q", fo.float64)
both = fo.flow_output(add(squares(p, q), squares(q, 1.0)))

with fo.slice(both) as s:
    print(s.run(3.0, 4.0))  # [42.0]
