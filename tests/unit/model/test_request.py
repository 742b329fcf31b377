from flowos.model import MeasurementRequest


def test_a_request_is_of_commands_or_of_probes_or_of_all() -> None:
    assert MeasurementRequest().subject == ()
    assert MeasurementRequest(probes=("clock", "gemm")).subject == ("clock", "gemm")
    commands = (("sh", "-c", "a\n b"), ("x" * 50,), ("\udcff",))
    assert MeasurementRequest(commands=commands).subject == ("`sh -c a b`", f"`{'x' * 40}`", "`?`")
