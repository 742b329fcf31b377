"""Reading and decoding for contestants that leave both to the user, as fast as we know."""

import io
from collections.abc import Callable
from typing import Any

from job import Job

SIDE = 224
Read = Callable[[int], bytes]


def reader(job: Job) -> Read:
    """Reads the file or object of a number; can be pickled."""
    return ObjectReader(job) if job.root.startswith("s3://") else FileReader(job)


class FileReader:
    def __init__(self, job: Job) -> None:
        self.paths = job.paths()

    def __call__(self, number: int) -> bytes:
        with open(self.paths[number], "rb", buffering=0) as file:  # noqa: PTH123 - Path costs time
            return file.read()


class ObjectReader:
    """Reads by obstore, whose client is created in the process that uses it."""

    def __init__(self, job: Job) -> None:
        self.bucket, _, prefix = job.root.removeprefix("s3://").partition("/")
        self.keys = [f"{prefix}/{name}" for name in job.names()]
        self.store: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "store": None}

    def __call__(self, number: int) -> bytes:
        import obstore
        from obstore.store import S3Store

        if self.store is None:
            self.store = S3Store(self.bucket, client_options={"allow_http": True})
        answer = obstore.get(self.store, self.keys[number])
        return bytes(answer.bytes())


def by_pillow(data: bytes) -> Any:
    """Decode to 224 x 224, antialiased, as Pillow's filters always are."""
    import numpy
    from PIL import Image

    with Image.open(io.BytesIO(data)) as picture:
        small = picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        return numpy.asarray(small)


def by_turbojpeg(data: bytes) -> Any:
    """libjpeg-turbo by simplejpeg, which is faster than Pillow's, then Pillow's filter."""
    import numpy
    import simplejpeg
    from PIL import Image

    picture = Image.fromarray(simplejpeg.decode_jpeg(data))
    return numpy.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def by_torch(data: bytes) -> Any:
    """libjpeg-turbo by simplejpeg, then the filter that torchvision uses, which is PyTorch's."""
    import simplejpeg
    import torch

    pixels = torch.from_numpy(simplejpeg.decode_jpeg(data)).permute(2, 0, 1)[None]
    small = torch.nn.functional.interpolate(pixels, (SIDE, SIDE), mode="bilinear", antialias=True)
    return small[0].permute(1, 2, 0)


DECODERS: dict[str, Callable[[bytes], Any]] = {
    "pillow": by_pillow,
    "turbojpeg": by_turbojpeg,
    "torch": by_torch,
}
