"""Some items fail: one is tried again, one takes too long, one is wrong, and the rest goes on."""

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import flowos as fo


@dataclass
class Job:
    name: str
    values: list[float]
    seconds: float = 0.0


@fo.task(retries=2, limit_seconds=1.0)
def mean(job: Job, marks: fo.str_, *, digits: int | None = None) -> float:
    time.sleep(job.seconds)
    mark = Path(marks, job.name)
    if job.name == "shy" and not mark.exists():
        mark.touch()
        raise ConnectionError("not yet")
    if not job.values:
        raise fo.NoRetry(f"{job.name} has no values")
    return round(sum(job.values) / len(job.values), digits)


def main() -> None:
    job, marks = fo.flow_input("job", Job), fo.flow_input("marks", fo.str_)
    jobs = [
        Job("plain", [1.0, 2.0]),
        Job("shy", [3.0]),
        Job("empty", []),
        Job("slow", [4.0], seconds=60.0),
        Job("last", [5.0, 6.0]),
    ]
    with (
        TemporaryDirectory() as folder,
        fo.slice(mean(job, marks, digits=1), workers="process") as s,
    ):
        for each, result in zip(
            jobs, s.map(((each, folder) for each in jobs), on_error="return"), strict=True
        ):
            end = result.outputs if result.ok else type(result.error).__name__
            print(each.name, end, "attempts:", result.attempts)
        runs = {s.submit(each, folder): each.name for each in jobs[:2]}
        print(sorted(runs[run] for run in fo.as_completed(runs)))


if __name__ == "__main__":
    main()
