"""The site: `make docs` builds it into build/docs; nothing of it is loaded from elsewhere.

Pages of commands and of public names are written into docs/reference/generated, from `--help` and
from docstrings.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

import _docstrings
import _generated

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
os.environ["COLUMNS"] = "100"  # of usage lines

project = "FlowOS"
copyright = "the authors of FlowOS"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns: list[str] = []
html_theme = "furo"
html_title = "FlowOS"
html_static_path = ["static"]
html_js_files = ["search_from_files.js"]
html_show_sphinx = False
html_copy_source = False
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
smartquotes = False
copybutton_prompt_text = "$ "

shutil.rmtree(HERE / "reference/generated", ignore_errors=True)
_generated.write(HERE / "reference/generated")


def _shorter_sidebar(_: object, name: str, *given: object) -> None:
    """Nine of ten links of the site were of sidebars, half of them of decisions on every page."""
    context = given[1]
    assert isinstance(context, dict)
    if whole := context.get("toctree"):
        depth = 1 if name.startswith("adr/") else -1
        context["toctree"] = lambda **asked: whole(**asked | {"collapse": True, "maxdepth": depth})


def setup(app: "Sphinx") -> None:
    def convert(_: object, *given: object) -> None:
        lines = given[-1]
        assert isinstance(lines, list)
        lines[:] = _docstrings.converted(lines)

    app.connect("autodoc-process-docstring", convert)
    app.connect("html-page-context", _shorter_sidebar, priority=400)  # before the theme's own
