"""Matrix Market files, also compressed, also as the SuiteSparse collection hands them out."""

import gzip
import tarfile
import zlib
from io import BytesIO
from os import PathLike
from pathlib import Path, PurePosixPath

from flowos.model import SolveError
from flowos.solver._csr import Csr, csr_of

_MARKET = b"%%matrixmarket"
_GZIP, _USTAR, _USTAR_AT = b"\x1f\x8b", b"ustar", 257


def read_matrix(path: str | PathLike[str]) -> Csr:
    """The matrix of NAME.mtx, NAME.mtx.gz or the collection's NAME.tar.gz, both triangles of it.

    Square; coordinate; real, integer or pattern (ones); symmetric or general. Entries given several
    times are added. Raises SolveError if a line is wrong, and says which.
    """
    from flowos._native import parse_matrix_market

    text = _text_of(Path(path))
    try:
        return csr_of(parse_matrix_market(text))
    except SolveError as error:
        raise SolveError(f"{path}: {error}") from None


def _text_of(path: Path) -> bytes:
    if path.is_char_device() or path.is_block_device():
        raise SolveError(f"{path}: it is a device, and no file")
    try:
        return _unpacked(path.read_bytes(), path)
    except OSError as error:
        raise SolveError(f"{path}: {error.strerror}") from None
    except MemoryError:
        raise SolveError(f"{path}: it takes more memory than there is") from None


def _unpacked(data: bytes, path: Path) -> bytes:
    if not data.startswith(_GZIP):
        if path.suffix in (".gz", ".tgz") and not data[: len(_MARKET)].lower() == _MARKET:
            raise SolveError(f"{path}: no gzip file, though named so, nor a Matrix Market file")
        return data
    try:
        data = gzip.decompress(data)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SolveError(f"{path}: damaged: {error}") from None
    if data[_USTAR_AT : _USTAR_AT + len(_USTAR)] != _USTAR:
        return data
    try:
        return _member_of(data, path)
    except (tarfile.TarError, EOFError) as error:
        raise SolveError(f"{path}: damaged: {error}") from None


def _member_of(data: bytes, path: Path) -> bytes:
    """Of NAME/NAME.mtx, NAME/NAME_b.mtx and so on the first is the matrix."""
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if name.suffix == ".mtx" and name.stem == (name.parent.name or name.stem):
                file = archive.extractfile(member)
                if file is not None:
                    return file.read()
    raise SolveError(f"{path}: no NAME/NAME.mtx is in it")
