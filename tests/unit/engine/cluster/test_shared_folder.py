"""The folder of a pool, while other programs of the same user remove it whenever it is empty."""

import os
import threading
from pathlib import Path

from flowos.engine.cluster._shared_folder import base_of, remove_if_empty, shown
from flowos.model import Pool


def test_it_is_there_for_who_writes_although_others_remove_it(tmp_path: Path) -> None:
    pool = Pool(name="p", kind="slurm", shared=str(tmp_path))
    base, over = base_of(pool), threading.Event()

    def remove() -> None:
        while not over.is_set():
            remove_if_empty(base)

    removers = [threading.Thread(target=remove) for _ in range(2)]
    for each in removers:
        each.start()
    try:
        for _ in range(500):
            with shown(base_of(pool)) as (proof, word):
                assert proof.read_text() == word
    finally:
        over.set()
        for each in removers:
            each.join()
    remove_if_empty(base)
    assert os.listdir(tmp_path) == []  # noqa: PTH208
