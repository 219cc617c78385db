"""Files are replaced in one step, and what is no file is left as it is."""

import contextlib
import os
import stat

import pytest

from fedaccord._io import sqlite
from fedaccord._io.files import replace_file, replacing


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is not a file; name a file"):
        replace_file(pipe, "text")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_link_to_a_pipe_does_not_hide_it(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with pytest.raises(OSError, match="it is not a file"):
        replace_file(link, "text")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_is_refused_before_anything_is_written(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        replace_file(tmp_path / "folder", "text")
    assert os.listdir(tmp_path) == ["folder"]


def test_a_link_to_a_file_is_followed(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    link.symlink_to(file)
    replace_file(link, "new")
    assert link.is_symlink()
    assert file.read_text() == "new"


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_fault_leaves_the_old_file_and_no_other(tmp_path, fault):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises((KeyboardInterrupt, OSError)) as caught, replacing(path) as file:
        file.write(b"new")
        raise fault
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]
    # A full disk does not name the file that the user knows.
    assert getattr(caught.value, "filename", str(path)) == str(path)


def test_a_transaction_that_is_cut_short_leaves_nothing(tmp_path):
    with contextlib.closing(sqlite.connect(tmp_path / "file.sqlite")) as connection:
        connection.execute("CREATE TABLE numbers (one INTEGER)")
        with sqlite.transaction(connection):
            connection.execute("INSERT INTO numbers VALUES (1)")
        with pytest.raises(KeyboardInterrupt), sqlite.transaction(connection):
            connection.execute("INSERT INTO numbers VALUES (2)")
            raise KeyboardInterrupt
        assert not connection.in_transaction
        assert connection.execute("SELECT one FROM numbers").fetchall() == [(1,)]
