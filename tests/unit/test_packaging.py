"""Recipes for conda and Spack ask for what pyproject.toml asks for."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from rattler_build import (
    PlatformConfig,
    RenderConfig,
    SingleOutputRecipe,
    Stage0Recipe,
    VariantConfig,
)

HERE = Path(__file__).parents[2]
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())


def asked(requirements: list[str]) -> dict[str, str]:
    """Least versions by name."""
    split = (re.match(r"([\w.-]+?)(?:\s*(?:>=|@)([\d.]*):?)?$", each) for each in requirements)
    return {found[1]: found[2] or "" for found in split if found}


WANTED = asked(PROJECT["project"]["dependencies"])
PYTHON = PROJECT["project"]["requires-python"].removeprefix(">=")
BUILDS = asked(PROJECT["build-system"]["requires"])


def test_the_recipe_of_conda_does() -> None:
    recipe = yaml.safe_load((HERE / "packaging/conda/recipe.yaml").read_text())
    needs = recipe["requirements"]
    assert asked(needs["run"]) == {**WANTED, "python": PYTHON}
    assert BUILDS.items() <= {**asked(needs["host"]), **asked(needs["build"][3:])}.items()
    assert recipe["package"]["name"] == PROJECT["project"]["name"]


RECIPE = HERE / "packaging/conda/recipe.yaml"
VARIANTS = VariantConfig({"c_compiler": ["gcc"], "cxx_compiler": ["gxx"], "c_stdlib": ["sysroot"]})
"""As conda-forge has them."""


@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64"])
def test_rattler_build_reads_the_recipe_and_renders_it(platform: str) -> None:
    recipe = Stage0Recipe.from_file(RECIPE)
    assert isinstance(recipe, SingleOutputRecipe)
    where = PlatformConfig(build_platform="linux-64", target_platform=platform)
    (rendered,) = recipe.render(VARIANTS, RenderConfig(where))
    built = [str(each) for each in rendered.recipe.requirements.build]
    assert built[:3] == [f"{tool}_{platform}" for tool in ("gcc", "gxx", "sysroot")]


def test_the_package_of_spack_has_the_names_that_spack_looks_for() -> None:
    """Spack itself is not to be had by pip, so that nothing else of it is checked."""
    (package,) = (HERE / "packaging/spack").glob("*/package.py")
    tree = ast.parse(package.read_text())
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert found.name == "".join(map(str.capitalize, package.parent.name.split("_")))
    assert ast.get_docstring(found)
    calls = [node for node in ast.walk(found) if isinstance(node, ast.Call)]
    named = [(ast.unparse(call.func), call) for call in calls]
    directives = {name for name, _ in named}
    (imported,) = (
        n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "spack.package"
    )
    assert directives == {each.name for each in imported.names}
    variants = {ast.literal_eval(call.args[0]) for name, call in named if name == "variant"}
    conditions = [k.value for _, call in named for k in call.keywords if k.arg == "when"]
    assert {ast.literal_eval(each).lstrip("+~") for each in conditions} <= variants


KEYWORDS = {
    "depends_on": {"when", "type", "patches"},
    "license": {"checked_by", "when"},
    "requires": {"policy", "when", "msg"},
    "variant": {"default", "description", "values", "multi", "validator", "when", "sticky"},
    "version": {"branch", "tag", "commit", "sha256", "url", "git", "preferred", "deprecated"},
}
"""Of Spack's directives, as its packaging guide names them."""
SPEC = r"[a-z][a-z0-9-]*(@[\d.]*:?[\d.]*)?([+~][a-z]+)*|platform=[a-z]+|main|Apache-2\.0"


def test_the_package_of_spack_calls_directives_as_spack_has_them() -> None:
    tree = ast.parse((HERE / "packaging/spack/py_flowos_hpc/package.py").read_text())
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        assert {each.arg for each in call.keywords} <= KEYWORDS[ast.unparse(call.func)]
        (first,) = call.args
        assert re.fullmatch(SPEC, ast.literal_eval(first))
        said = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
        types = said.get("type", ())
        kinds = {types} if isinstance(types, str) else {*types}
        assert kinds <= {"build", "link", "run", "test"}
        assert re.fullmatch(r"[+~][a-z]+", said.get("when", "+x"))


STYLE = (
    ("black", "--check", "--line-length=99"),
    ("isort", "--check", "--profile=black", "--line-length=99"),
    ("flake8", "--max-line-length=99", "--extend-ignore=F403,F405"),
)
"""What `spack style` runs. The ignored ones: it lets packages import all of `spack.package`."""


@pytest.mark.parametrize("words", STYLE, ids=lambda words: words[0])
def test_the_package_of_spack_has_its_style(words: tuple[str, ...]) -> None:
    package = HERE / "packaging/spack/py_flowos_hpc/package.py"
    argv = (sys.executable, "-m", *words, str(package))
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_of_spack_does() -> None:
    tree = ast.parse((HERE / "packaging/spack/py_flowos_hpc/package.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [call for call in calls if ast.unparse(call.func) == "depends_on"]
    found = asked([ast.literal_eval(call.args[0]) for call in named])
    wanted = {f"py-{name}": version for name, version in WANTED.items() if name != "shtab"}
    assert wanted.items() <= found.items()
    assert found["python"] == PYTHON
    plain = {**found, **{name.removeprefix("py-"): at for name, at in found.items()}}
    assert BUILDS.items() <= plain.items()
