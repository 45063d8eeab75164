"""Every command line in the README and the manual is one that the command accepts, and every link leads somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from app.cli.arguments import parse
from tests.places import ROOT

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")]


def commands() -> list[str]:
    """Lines of code blocks that call `lapstrake`; what follows two spaces is a remark."""
    found = []
    for page in PAGES:
        for block in re.findall(r"```(?:\w*)\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            lines = (line.strip().replace("\\", "/") for line in block.splitlines())
            found += [re.split(r"\s{2,}", line)[0] for line in lines if re.match(r"(\S*/)?lapstrake( |$)", line)]
    return found


@pytest.mark.parametrize("command", commands())
def test_documented_command_is_accepted(command: str) -> None:
    words = shlex.split(command)[1:]
    parsed = parse(words)
    # A word that is no command is taken for a file to open.
    known = ("", parsed.command, "--help", "--version", "FILE")
    assert "".join(words[:1]) in known or re.search("[./]", words[0]), words[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_samples_named_in_the_readme_exist() -> None:
    named = re.findall(r"samples/\w+\.hlo", (ROOT / "README.md").read_text("utf-8"))
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
