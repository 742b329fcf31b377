"""Notes of several nodes are one per journal."""

from flowos.engine.results._notes import again_note, new_inputs_note, summed_notes, taken_note


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


def test_one_result_is_one() -> None:
    one, two = taken_note(1, "cache c"), taken_note(2, "cache c")
    assert one == "1 result was taken from cache c"
    assert summed_notes([one]) == (one,)
    assert summed_notes([one, one]) == (two,)
    assert summed_notes([one, two]) == ("3 results were taken from cache c",)


def test_what_ran_again_on_several_nodes_is_one_note_with_the_first_file() -> None:
    gone = [again_note(count, "sim", "its file is gone", f"/{count}.npy") for count in (1, 3)]
    other = again_note(1, "sim", "its file has another content", "/a (b).npy")
    new = [new_inputs_note(2, label, "journal kept") for label in ("sim", "sum", "sim")]
    assert summed_notes([gone[0], other, *new, gone[1]]) == (
        "4 calls of task 'sim' ran again: its file is gone (/1.npy)",
        "1 call of task 'sim' ran again: its file has another content (/a (b).npy)",
        "4 calls of task 'sim' ran: journal kept has no result of these inputs",
        "2 calls of task 'sum' ran: journal kept has no result of these inputs",
    )


def test_other_notes_are_as_they_are() -> None:
    assert summed_notes(["b", "a", "b"]) == ("b", "a")
    assert summed_notes([]) == ()
