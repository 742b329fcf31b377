"""tools/names.py finds names with two meanings."""

import runpy
from pathlib import Path

import pytest

GATE = runpy.run_path(str(Path(__file__).parents[2] / "tools/names.py"))


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (
            "class Ab: pass",
            "class Ab: pass",
            "class Ab is defined in src/flowos/a.py, src/flowos/b.py",
        ),
        (
            "class Ab: pass",
            "Ab = tuple[int, str]",
            "Ab is an alias in src/flowos/b.py; the class is",
        ),
        ("class Ab: pass", "Ab: TypeAlias = 'int | str'", "Ab is an alias in src/flowos/b.py"),
        ("class Ab: pass", "Ab = int | None", "Ab is an alias in src/flowos/b.py"),
        ("class Ab: pass", "Ab = make('A')", ""),
        ("class _Ab: pass", "class _Ab: pass", ""),
        ("Ab = int | None", "Ab = tuple[int, str]", ""),
    ],
)
def test_a_class_shares_its_name_with_no_class_and_no_alias(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    first: str,
    second: str,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    package = Path("src/flowos")
    package.mkdir(parents=True)
    (package / "a.py").write_text(first)
    (package / "b.py").write_text(second)
    assert GATE["main"]() == bool(says)
    error = capsys.readouterr().err
    assert error.startswith(says)
    assert bool(error) == bool(says)
