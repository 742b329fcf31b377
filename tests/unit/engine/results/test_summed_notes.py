"""Notes of several nodes are one per journal."""

from flowos.engine.results._notes import summed_notes, taken_note


def test_what_nodes_took_from_one_journal_is_one_note_with_the_sum() -> None:
    notes = (
        taken_note(218, "journal kept"),
        "task 'x' runs again",
        taken_note(5, "cache c"),
        taken_note(282, "journal kept"),
        "task 'x' runs again",
        taken_note(5, "cache c"),
    )
    assert summed_notes(notes) == (
        "task 'x' runs again",
        "500 results were taken from journal kept",
        "10 results were taken from cache c",
    )


def test_other_notes_are_as_they_are() -> None:
    assert summed_notes(["b", "a", "b"]) == ("b", "a")
    assert summed_notes([]) == ()
