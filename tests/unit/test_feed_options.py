"""Keywords of a feed in the words of the command line."""

import pytest

from flowos.cli._feed_options import as_options


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "x.bin: say what is in it, as dtype='uint16', length=1024",
            "x.bin: say what is in it, as --dtype uint16, --length 1024",
        ),
        ("of which dtype= and length= say", "of which --dtype and --length say"),
        ("label_column=7; expected a name", "--label-column 7; expected a name"),
        (
            "say which, as extensions=['jpg', 'png'], or extensions='all'",
            "say which, as --extensions jpg,png, or --extensions all",
        ),
        ("dtype='unit8' (str) is not a dtype; give", "--dtype unit8 is not a dtype; give"),
        ("source=''; expected a path", "SOURCE: an empty word; expected a path"),
        ("source='' (str) among them; expected", "SOURCE: an empty word among them; expected"),
        ("/data/length=5/x.bin: no such file", "/data/length=5/x.bin: no such file"),
        ("min_free_bytes=-1; expected", "--min-free -1; expected"),
    ],
)
def test_keywords_become_options(said: str, told: str) -> None:
    assert as_options(said) == told
