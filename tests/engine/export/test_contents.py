"""The table of formats is the command line's, and each is written as what it says."""

from __future__ import annotations

import pytest

from app.cli.arguments import parse
from engine.export.contents import FORMATS, content_of
from engine.session.plan import Plan, plain_plan
from tests.engine.export.test_report import evaluated


def test_the_command_line_takes_every_format_but_the_report() -> None:
    for name in FORMATS:
        command = ["export", "a.hlo", "--to", name, "-o", "out"]
        if name == "report":
            with pytest.raises(SystemExit):
                parse(command)
        else:
            assert parse(command).to == name


@pytest.mark.parametrize("to", FORMATS)
def test_binary_ones_are_no_text(to: str) -> None:
    evaluator = evaluated()
    base = evaluator.evaluate(plain_plan(evaluator.module), "as loaded")
    content = content_of(evaluator.evaluate(Plan("fuse", "top-down")), to, base, evaluator.module)
    binary = b"\x00" in content
    assert binary == FORMATS[to].binary
