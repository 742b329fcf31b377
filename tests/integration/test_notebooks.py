"""Each notebook of examples/notebooks runs in a kernel, and shows its pictures by itself."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NOTEBOOKS = Path(__file__).parents[2] / "examples/notebooks"
SHOWN = {
    "feed": ["image/png", "image/png"],
    "flow": ["<svg", "<svg"],
    "measurement": ["<iframe"],
    "solve": ["<img", "<img"],
}
"""What the pictures of each begin with, or their type."""


def test_all_of_them_are_here() -> None:
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == sorted(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the notebook's own packages
def test_a_notebook_runs_and_shows_itself(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code), "strip its outputs"
    kernel = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources=kernel
    ).execute()
    shown = [output.data for cell in code for output in cell.outputs if "data" in output]
    pictures = [each for each in shown if "text/html" in each or "image/png" in each]
    kinds = SHOWN[name]
    assert len(pictures) == len(kinds)
    for data, kind in zip(pictures, kinds, strict=True):
        assert kind in data or kind in data["text/html"]
