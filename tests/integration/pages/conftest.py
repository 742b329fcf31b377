"""A browser, and a folder for its pictures.

To keep pages and pictures: FLOWOS_SCREENSHOTS=FOLDER pytest tests/integration/pages
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .browser import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Browser]:
    shown_in = folder if os.environ.get("FLOWOS_SCREENSHOTS") else None
    opened = Browser(tmp_path_factory.mktemp("profile"), shown_in)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = Path(os.environ.get("FLOWOS_SCREENSHOTS") or tmp_path_factory.mktemp("page"))
    kept.mkdir(parents=True, exist_ok=True)
    return kept.absolute()
