"""`python formats.py FORM FILES LIST TARGET`: converts the samples to a contestant's format.

Shuffled once, as their authors advise, since they are read sequentially. Shards are small (8 MB; 64
tar files), which is best for the first batch and for many workers.
"""

import io
import random
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

SHARD_BYTES = 8 << 20
TAR_SHARDS = 64


def to_tar(files: Path, names: list[str], target: Path) -> None:
    target.mkdir()
    for shard in range(TAR_SHARDS):
        with tarfile.open(target / f"shard-{shard:04d}.tar", "w") as tar:
            for name in names[shard::TAR_SHARDS]:
                data = (files / name).read_bytes()
                member = tarfile.TarInfo(name.replace("/", "-"))
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def to_mds(files: Path, names: list[str], target: Path) -> None:
    from streaming_here import MDSWriter

    with MDSWriter(out=str(target), columns={"jpg": "bytes"}, size_limit=SHARD_BYTES) as writer:
        for name in names:
            writer.write({"jpg": (files / name).read_bytes()})


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


def to_lit(files: Path, names: list[str], target: Path) -> None:
    import litdata

    litdata.optimize(
        fn=_read,
        inputs=[str(files / name) for name in names],
        output_dir=str(target),
        chunk_bytes=SHARD_BYTES,
        num_workers=1,
    )


FORMS: Mapping[str, Callable[[Path, list[str], Path], None]] = {
    "tar": to_tar,
    "mds": to_mds,
    "lit": to_lit,
}


def main(form: str, files: str, listed: str, target: str) -> None:
    names = [line.partition("\t")[0] for line in Path(listed).read_text().splitlines()]
    random.Random(0).shuffle(names)
    FORMS[form](Path(files), names, Path(target))


if __name__ == "__main__":
    main(*sys.argv[1:])
