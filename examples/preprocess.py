"""Raw logs are made ready by commands: unpacked where they are packed, cleaned, sorted, counted.

python examples/preprocess.py FOLDER; FOLDER/raw has the logs (some are made if it is not there),
FOLDER/ready gets them. Results are kept in FOLDER/journal: run it again, and commands run only for
logs that are new or changed.
"""

import gzip
import sys
from pathlib import Path

import flowos as fo

UNPACK = 'gzip -dc "$1" > "$2"'
CLEAN = 'BEGIN { printf "" > out } NF == 3 && $3 == $3 + 0 { print > out }'

unpack = fo.command(["sh", "-c", UNPACK, "sh", fo.In("log"), fo.Out("unpacked")], name="unpack")
clean = fo.command(
    ["awk", "-F,", "-v", ("out=", fo.Out("clean")), CLEAN, fo.In("log")], name="clean"
)
sort = fo.command(
    ["sort", "--unique", ("--output=", fo.Out("sorted")), fo.In("log")],
    name="sort",
    variables={"LC_ALL": "C"},
)


@fo.task
def is_packed(log: fo.File) -> fo.bool_:
    with log.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


@fo.task
def summary(log: fo.File) -> tuple[fo.int64, fo.float64]:
    """Rows, and the mean of their values."""
    values = [float(line.rpartition(",")[2]) for line in log.read_text().splitlines()]
    return len(values), sum(values) / max(1, len(values))


def flow_of_one() -> fo.Flow:
    log, as_it_is = (fo.flow_input("log", fo.File) for _ in range(2))
    plain = fo.cond(is_packed(log), unpack, fo.flow_output(as_it_is), log)
    done = sort(clean(plain))
    return fo.flow_output(done, *summary(done))


def make_logs(folder: Path, count: int = 12, rows: int = 2000) -> None:
    """Every third is packed; one row in 50 is damaged."""
    folder.mkdir(parents=True)
    for i in range(count):
        lines = [
            "damaged" if k % 50 == i else f"sensor{k * 7 % 10},{k % 1000},{(k * k + i) % 997 / 8}"
            for k in range(rows)
        ]
        text = "".join(f"{line}\n" for line in lines).encode()
        packed = i % 3 == 0
        name = f"log{i:02}.csv{'.gz' if packed else ''}"
        (folder / name).write_bytes(gzip.compress(text, mtime=0) if packed else text)


def main(folder: Path) -> None:
    if not (folder / "raw").exists():
        make_logs(folder / "raw")
    logs = sorted((folder / "raw").iterdir())
    with fo.slice(flow_of_one(), journal=folder / "journal") as s:
        results = s.map(logs, on_error="return")
        for log, result in zip(logs, results, strict=True):
            if result.outputs is None:
                print(f"{log.name}: {result.error}")
                continue
            done, rows, mean = result.outputs
            fo.publish(done, folder / "ready" / log.name.removesuffix(".gz"))
            print(f"{log.name}: {rows} rows, mean {mean:.3f}")
        print(*s.notes, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
