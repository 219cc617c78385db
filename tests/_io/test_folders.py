"""Folders of new files: all or none, and never over what is there."""

import pytest

from fedaccord._io import folders
from fedaccord._io.folders import write_folder
from fedaccord.errors import InputError

FILES = {"a.txt": "one\n", "deep/b.bin": b"\x00two"}


def test_all_files_are_written_as_they_are(tmp_path):
    write_folder(tmp_path / "new" / "folder", FILES, what="files")
    made = tmp_path / "new" / "folder"
    assert (made / "a.txt").read_bytes() == b"one\n"
    assert (made / "deep" / "b.bin").read_bytes() == b"\x00two"


def test_hidden_files_do_not_matter_unless_they_are_named(tmp_path):
    (tmp_path / ".git").mkdir()
    with pytest.raises(InputError, match=r"it has \.git"):
        write_folder(tmp_path, FILES, what="files", hidden=(".git",))
    write_folder(tmp_path, FILES, what="files")


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "a.txt").write_text("mine")
    with pytest.raises(InputError, match=r"is not empty \(it has a\.txt\)"):
        write_folder(tmp_path, FILES, what="files")
    with pytest.raises(InputError, match="is not a folder"):
        write_folder(tmp_path / "a.txt", FILES, what="files")
    assert (tmp_path / "a.txt").read_text() == "mine"


def test_a_fault_in_the_middle_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(path, content, made):
        if path.name == "b.bin":
            raise OSError(28, "No space left on device")
        plainly(path, content, made)

    plainly = folders.write_new
    monkeypatch.setattr(folders, "write_new", full)
    with pytest.raises(InputError, match=r"cannot write files to .*: No space left"):
        write_folder(tmp_path / "new", FILES, what="files")
    assert list(tmp_path.iterdir()) == []
