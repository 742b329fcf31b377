"""Writes docs/flowos-toml.md from the dataclasses that flowos.toml is read into.

`python tools/settings_page.py`
"""

from pathlib import Path

from flowos.operations.settings import settings_page

if __name__ == "__main__":
    Path("docs/flowos-toml.md").write_text(settings_page())
