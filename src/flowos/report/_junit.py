"""A checked run as JUnit XML, as Jenkins, GitLab and GitHub's actions read it.

One suite, one test case for each number: `failure` where it is worse, `skipped` where it was not
measured or cannot be judged. Format: https://github.com/testmoapp/junitxml.
"""

from xml.etree import ElementTree as Xml

from flowos.model import Run
from flowos.plan import BaselineCheck, NumberCheck
from flowos.report._acceptance_text import limits_text
from flowos.report._units import number, share
from flowos.report._wrap import safe


def junit(check: BaselineCheck, run: Run, of: str) -> str:
    """of: name of the baseline."""
    top = Xml.Element("testsuites", _counts(check))
    suite = Xml.SubElement(
        top,
        "testsuite",
        {
            "name": f"flowos measure --check {safe(of)}",
            **_counts(check),
            "timestamp": run.started.removesuffix("Z"),
            "hostname": safe(run.host),
            "time": "0",
        },
    )
    properties = Xml.SubElement(suite, "properties")
    for name, value in (("run", run.id), ("baseline", of), ("answer", check.answer)):
        Xml.SubElement(properties, "property", {"name": name, "value": safe(value)})
    for row in check.numbers:
        _case(suite, row)
    Xml.indent(top, " ")
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f"{head}{Xml.tostring(top, encoding='unicode')}\n"


def _counts(check: BaselineCheck) -> dict[str, str]:
    failed = sum(row.answer == "worse" for row in check.numbers)
    skipped = sum(not row.judged for row in check.numbers)
    counts = {"tests": len(check.numbers), "failures": failed, "errors": 0, "skipped": skipped}
    return {name: str(count) for name, count in counts.items()}


def _case(suite: Xml.Element, row: NumberCheck) -> None:
    levels = " ".join(f"{axis}={level}" for axis, level in row.number.levels)
    name = f"{row.number.metric} {levels}".rstrip()
    about = {"classname": f"flowos.{row.number.probe}", "name": name, "time": "0"}
    case = Xml.SubElement(suite, "testcase", {key: safe(word) for key, word in about.items()})
    message = {"message": safe(_message(row))}
    if row.answer == "worse":
        failure = Xml.SubElement(case, "failure", {**message, "type": "worse"})
        failure.text = message["message"]
    elif not row.judged:
        Xml.SubElement(case, "skipped", message)


def _message(row: NumberCheck) -> str:
    of = row.number
    base = number(of.median, of.unit, of.metric)
    expected = f"baseline {base}, tolerance {share(of.tolerance)}: {limits_text(of)}"
    if row.value is None:
        return f"not measured: {row.why}; {expected}"
    why = f": {row.why}" if row.why else ""
    return f"{number(row.value, of.unit, of.metric)} ({row.answer}{why}); {expected}"
