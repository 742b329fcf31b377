"""Decorated functions: several outputs, defaults, values by name; a flow that prints itself."""

import flowos as fo


@fo.task
def divide(number: fo.int64, by: fo.int64 = 10) -> tuple[fo.int64, fo.int64]:
    return divmod(number, by)


@fo.task
def add(x: fo.int64, y: fo.int64) -> fo.int64:
    return x + y


number = fo.flow_input("number", fo.int64)
tens, ones = divide(number)
digits = fo.flow_output(add(tens, ones), tens, name="digits")

print(digits)
with fo.slice(digits) as s:
    print(s.run(42))  # [6, 4]
    print(s.run(number=77))  # [14, 7]
