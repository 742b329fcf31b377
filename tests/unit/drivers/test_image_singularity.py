"""The variables of an image of Apptainer or Singularity, read from its scripts without a shell."""

import subprocess

import pytest

from flowos.drivers.images import singularity

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# as Apptainer 1.4.5 writes it for docker://continuumio/miniconda3-like images
FROM_DOCKER = """\
#!/bin/sh
export PATH="/opt/conda/bin:/usr/local/bin:/usr/bin:/bin"
export LANG="${LANG:-"C.UTF-8"}"
export WORDS="${WORDS:-"a \\"b\\" \\$c"}"
"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("export A=b", "b"),
        ("    export A=b   # why", "b"),
        ("export A=", ""),
        ("export A='b $c `d`'", "b $c `d`"),
        ('export A="b  c"', "b  c"),
        (r'export A="\"\$\\\a"', r'"$\\a'),
        (r"export A=b\ c", "b c"),
        ("export A=b'c'\"d\"e;", "bcde"),
        ("export A=/x:$PATH", f"/x:{PATH}"),
        ('export A="/x:${PATH}"', f"/x:{PATH}"),
        ("export A=${PATH:+yes}", None),
        ("export A=/x${NONE}/y$NONE", "/x/y"),
        ("export A=${NONE:-b}${NONE-c}", "bc"),
        ('export A="${NONE:-b c}"', "b c"),
        ("export A=${PATH:-b}", PATH),
        ("export A=$(hostname)", None),
        ('export A="$(hostname)"', None),
        ("export A=`hostname`", None),
        ('export A="`hostname`"', None),
        ("export A=${NONE:-$(hostname)}", None),
        ("export A='b", None),
        ('export A="b', None),
        ("export A=b&", None),
        ("A=b", None),
        ("export A", None),
        ("# export A=b", None),
        ("echo export A=b", None),
    ],
)
def test_an_export_is_read_as_a_shell_would_or_left_out(text: str, value: str | None) -> None:
    found = singularity.variables([text])
    assert found == (() if value is None else (("A", value),))
    if value is not None:
        words = ["/bin/sh", "-c", f'{text}\nprintf %s "$A"']
        assert subprocess.check_output(words, env={"PATH": PATH}, text=True) == value


def test_what_is_set_later_counts_and_sees_what_was_set_before() -> None:
    scripts = ["export A=1 B=$A$A\nexport C='3'", "export A=/x:$A\n"]
    assert dict(singularity.variables(scripts)) == {"A": "/x:1", "B": "11", "C": "3"}


def test_what_stands_under_a_condition_is_left_out() -> None:
    text = """
if [ -d /x ]; then
    export A=1
    if true; then export A=2; fi
fi
for x in a b; do export A=$x; done
f() {
    export A=3
}
case x in
    x) export A=4 ;;
esac
export B=5
"""
    assert singularity.variables([text]) == (("B", "5"),)


def test_what_closes_nothing_hides_nothing() -> None:
    assert singularity.variables(["fi\nexport A=1\n}\ndone\nexport B=2"]) == (
        ("A", "1"),
        ("B", "2"),
    )


def test_what_apptainer_writes_for_an_image_of_docker_is_read_whole() -> None:
    assert dict(singularity.variables([FROM_DOCKER])) == {
        "PATH": "/opt/conda/bin:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "WORDS": 'a "b" $c',
    }


def test_the_runtimes_own_scripts_are_none_of_the_images() -> None:
    names = (
        *("01-base.sh", "10-docker2singularity.sh", "90-environment.sh", "91-environment.sh"),
        *("94-appsbase.sh", "95-apps.sh", "99-base.sh", "99-runtimevars.sh", "90-environment"),
    )
    assert [name for name in names if singularity.sets_variables(name)] == [
        *("10-docker2singularity.sh", "90-environment.sh", "91-environment.sh")
    ]
