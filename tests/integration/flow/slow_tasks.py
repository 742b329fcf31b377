"""Tasks of progress, in a file that a worker imports without pytest."""

import time

import flowos as fo


@fo.task
def slow(n: fo.int64) -> fo.int64:
    time.sleep(0.05)
    return n


@fo.task
def add(a: fo.int64, b: fo.int64) -> fo.int64:
    time.sleep(0.05)
    return a + b


@fo.task
def odd(n: fo.int64) -> fo.int64:
    time.sleep(0.02)
    if n % 2:
        raise ValueError("odd")
    return n


@fo.task
def fast(n: fo.int64) -> fo.int64:
    return n
