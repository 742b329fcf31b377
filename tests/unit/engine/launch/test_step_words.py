"""Steps of Slurm in what is said of a node or process that is gone."""

import pytest

from flowos.engine.launch._end_reasons import step_words


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((), ""),
        (("", ""), ""),
        (("7.3",), "; step 7.3"),
        (("7.10", "7.9", "", "7.9"), "; steps 7.9, 7.10"),
        (tuple(f"7.{n}" for n in range(1, 6)), "; steps 7.1, 7.2, 7.3 and 2 more"),
    ],
)
def test_a_few_are_named_and_the_others_counted(steps: tuple[str, ...], words: str) -> None:
    assert step_words(*steps) == words
