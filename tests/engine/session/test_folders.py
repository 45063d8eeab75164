"""Files of one name are told apart by as little of their folders as will do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.session.folders import file_names, telling_folders

_PATHS = st.lists(
    st.lists(st.sampled_from("abc"), max_size=4).map(lambda p: "/" + "/".join([*p, "m.hlo"])), unique=True
)


def test_a_file_is_named_with_its_folder() -> None:
    assert file_names(["/runs/one/step.hlo", "/runs/two/step.hlo"]) == ("step.hlo  —  one", "step.hlo  —  two")
    assert file_names(["step.hlo"]) == ("step.hlo",)
    assert file_names([]) == ()


def test_folders_of_one_name_are_told_apart_by_those_above() -> None:
    captures = [f"/jobs/{job}/{step}/capture/partitioned.hlo" for job, step in (("a", "1"), ("a", "2"), ("b", "1"))]
    assert file_names(captures) == (
        "partitioned.hlo  —  a/1/capture",
        "partitioned.hlo  —  2/capture",
        "partitioned.hlo  —  b/1/capture",
    )
    deep = [f"/{job}/x/y/step.hlo" for job in "ab"]
    assert file_names(deep) == ("step.hlo  —  a/…/y", "step.hlo  —  b/…/y")
    assert file_names(["/a/step.hlo", "/b/a/step.hlo"]) == ("step.hlo  —  /a", "step.hlo  —  b/a")


def test_another_name_needs_no_folder() -> None:
    assert telling_folders("/a/step.hlo", ["/b/other.hlo"]) == ""
    assert telling_folders("/a/step.hlo", ["/a/step.hlo"]) == ""
    assert telling_folders("/b/a/step.hlo", ["/a/step.hlo"]) == "b/…/"


@given(_PATHS)
def test_no_two_files_are_called_alike(paths: list[str]) -> None:
    assert len(set(file_names(paths))) == len(paths)
