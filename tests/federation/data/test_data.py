"""Data come out of files as they went in, or one sentence says why not; nothing is unpickled."""

import gzip
import io
import pickle
import struct
import sys
import zipfile

import numpy as np
import pytest
from federation.real_data import real_file
from hypothesis import given
from hypothesis import strategies as st

from fedaccord._io import npz
from fedaccord.errors import InputError, MissingExtraError
from fedaccord.federation.data import idx as idx_files
from fedaccord.federation.data.dataset import Column, Dataset, Preparation, load_data


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    monkeypatch.delenv("FEDACCORD_DATA", raising=False)


def idx(array: np.ndarray) -> bytes:
    """Write an array of bytes in the idx format, from its definition."""
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


IMAGES = np.arange(5 * 3 * 2, dtype=np.uint8).reshape(5, 3, 2)
LABELS = np.array([0, 9, 1, 1, 2], dtype=np.uint8)
EMNIST = {
    f"emnist-balanced-{part}-{kind}-ubyte": idx(array[rows])
    for part, rows in (("train", slice(0, 3)), ("test", slice(3, 5)))
    for kind, array in (("images-idx3", IMAGES), ("labels-idx1", LABELS))
}
FASHION = {
    name.replace("emnist-balanced-", "").replace("test", "t10k"): content
    for name, content in EMNIST.items()
}


def write(folder, files, *, packed=False):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        place = folder / (f"{name}.gz" if packed else name)
        place.write_bytes(gzip.compress(content) if packed else content)
    return folder


def write_zip(path, files, folder="gzip/"):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{folder}{name}.gz", gzip.compress(content))
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_idx_folders_are_read_in_order(tmp_path, packed):
    for source, files in (("emnist", EMNIST), ("fashion-mnist", FASHION)):
        found = load_data(source, path=write(tmp_path / source, files, packed=packed))
        assert np.array_equal(found.inputs, IMAGES)
        assert found.inputs.dtype == np.uint8
        assert found.labels.tolist() == LABELS.tolist()
        assert found.input_shape == (1, 3, 2)


def test_the_official_emnist_archive_is_read_without_unpacking_it(tmp_path, monkeypatch):
    archive = write_zip(tmp_path / "gzip.zip", EMNIST)
    found = load_data("emnist", path=archive)
    assert np.array_equal(found.inputs, IMAGES)
    assert len(found.classes) == 47
    assert [found.classes[n] for n in (0, 10, 35, 36, 46)] == ["0", "A", "Z", "a", "t"]
    monkeypatch.setenv("FEDACCORD_DATA", str(tmp_path))
    assert load_data("emnist").sha256 == found.sha256
    assert load_data("emnist", path="gzip.zip").sha256 == found.sha256


def test_emnist_may_be_an_npz_file(tmp_path):
    path = tmp_path / "some.npz"
    np.savez_compressed(path, images=IMAGES, labels=LABELS)
    found = load_data("emnist", path=path)
    assert found.classes[found.labels[1]] == "9"
    assert load_data(str(path)).classes == tuple("0123456789")


def test_fashion_is_found_where_debian_puts_it(tmp_path, monkeypatch):
    assert str(idx_files.FASHION_FOLDER) == "/usr/share/datasets/fashion-mnist"
    monkeypatch.setattr(idx_files, "FASHION_FOLDER", write(tmp_path, FASHION, packed=True))
    found = load_data("fashion-mnist")
    assert np.array_equal(found.inputs, IMAGES)
    assert found.classes[9] == "Ankle boot"


def test_missing_data_say_where_to_get_them_and_where_to_put_them(tmp_path, monkeypatch):
    monkeypatch.setattr(idx_files, "FASHION_FOLDER", tmp_path / "nothing")
    with pytest.raises(InputError, match=r"gzip.zip from https://www.nist.gov/.*FEDACCORD_DATA"):
        load_data("emnist")
    with pytest.raises(InputError, match=r"not at .*nowhere: download"):
        load_data("emnist", path=tmp_path / "nowhere")
    with pytest.raises(InputError, match="apt install dataset-fashion-mnist"):
        load_data("fashion-mnist")
    monkeypatch.setenv("FEDACCORD_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"no file a.csv, nor in .*FEDACCORD_DATA"):
        load_data("a.csv", label="x")
    with pytest.raises(InputError, match="is not a file"):
        (tmp_path / "b.csv").mkdir()
        load_data(str(tmp_path / "b.csv"), label="x")


FIRST, SECOND = list(EMNIST)[:2]
BAD_IDX = {
    "not gzip at all": ({FIRST: None}, "damaged"),
    "cut within the gzip": ({FIRST: gzip.compress(EMNIST[FIRST])[:-9]}, "damaged"),
    "cut within the images": ({FIRST: gzip.compress(EMNIST[FIRST][:-1])}, "is cut short"),
    "cut within the header": ({FIRST: gzip.compress(EMNIST[FIRST][:9])}, "is cut short"),
    "empty": ({FIRST: gzip.compress(b"")}, "does not start as an idx file"),
    "more than it says": ({FIRST: gzip.compress(EMNIST[FIRST] + b"x")}, "goes on after"),
    "labels for images": ({FIRST: gzip.compress(EMNIST[SECOND])}, "with 3 axes"),
    "images for labels": ({SECOND: gzip.compress(EMNIST[FIRST])}, "with 1 axis"),
    "a label too few": ({SECOND: gzip.compress(idx(LABELS[:2]))}, "3 images and .* 2 labels"),
    "a label too high": ({SECOND: gzip.compress(idx(LABELS[:3] + 38))}, "sample 1 .* 0 to 46"),
    "images of two sizes": ({FIRST: gzip.compress(idx(IMAGES[:3, :, :1]))}, "one size"),
    "a terabyte announced": (
        {FIRST: gzip.compress(bytes([0, 0, 8, 3]) + struct.pack(">3I", 10**6, 10**3, 10**3))},
        "claims 1000000000000 bytes",
    ),
}


@pytest.mark.parametrize("fault", BAD_IDX)
def test_damaged_idx_files_are_refused_with_a_sentence(tmp_path, fault):
    changed, words = BAD_IDX[fault]
    write(tmp_path, EMNIST, packed=True)
    for name, content in changed.items():
        (tmp_path / f"{name}.gz").write_bytes(content or b"hello")
    with pytest.raises(InputError, match=words) as caught:
        load_data("emnist", path=tmp_path)
    assert "\n" not in str(caught.value)


def test_a_folder_that_lacks_a_file_is_told_which(tmp_path):
    write(tmp_path, {name: content for name, content in EMNIST.items() if name != SECOND})
    with pytest.raises(InputError, match=f"lacks {SECOND}.gz"):
        load_data("emnist", path=tmp_path)


def test_archives_that_would_burst_or_are_broken_are_refused(tmp_path, monkeypatch):
    path = write_zip(tmp_path / "gzip.zip", {"other": b""})
    with pytest.raises(InputError, match=f"holds no {FIRST}"):
        load_data("emnist", path=path)
    path.write_bytes(write_zip(path, EMNIST).read_bytes()[:-30])
    with pytest.raises(InputError, match="damaged"):
        load_data("emnist", path=path)
    write_zip(path, EMNIST)
    monkeypatch.setattr(npz, "LARGEST_BYTES", 10)
    with pytest.raises(InputError, match="claims 0 GB unpacked"):
        load_data("emnist", path=path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    # Four gigabytes announced by a header of a few bytes; nothing of it is there.
    path = tmp_path / "bomb.npz"
    np.savez(path, images=IMAGES, labels=LABELS)
    content = path.read_bytes()
    size = content.index(b"PK\x01\x02") + 24
    path.write_bytes(content[:size] + struct.pack("<I", 2**32 - 2) + content[size + 4 :])
    with pytest.raises(InputError, match="claims 4 GB unpacked, more than the 2 GB"):
        load_data(str(path))


def test_arrays_that_would_burst_together_are_refused(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", images=IMAGES, labels=LABELS)
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        largest, total = (f(i.file_size for i in archive.infolist()) for f in (max, sum))
    monkeypatch.setattr(npz, "LARGEST_BYTES", total)
    assert len(load_data(str(tmp_path / "a.npz"))) == 5
    assert largest < total - 1
    monkeypatch.setattr(npz, "LARGEST_BYTES", total - 1)
    with pytest.raises(InputError, match="claim 0 GB unpacked together"):
        load_data(str(tmp_path / "a.npz"))


def test_only_the_arrays_that_are_needed_are_read(tmp_path):
    np.savez(tmp_path / "a.npz", images=IMAGES, labels=LABELS)
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("diary.npy", b"no array")
        archive.writestr("x.npy", b"no array")
        archive.writestr("readme.txt", b"no array")
    assert np.array_equal(load_data(str(tmp_path / "a.npz")).inputs, IMAGES)
    assert len(load_data("emnist", path=tmp_path / "a.npz")) == 5
    npz.save_arrays(tmp_path / "b.npz", {"values": LABELS}, {"made": "here"})
    with zipfile.ZipFile(tmp_path / "b.npz", "a") as archive:
        archive.writestr("diary.npy", b"no array")
    arrays, _ = npz.load_arrays(tmp_path / "b.npz", "things", ("values", "made"))
    assert list(arrays) == ["values"]


class Payload:
    """Would write a file when unpickled."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return (open, (str(self.place), "w"))


def test_nothing_is_unpickled(tmp_path):
    victim = tmp_path / "was here"
    objects = np.empty(2, dtype=object)
    objects[:] = [Payload(victim), 1]
    np.savez(tmp_path / "a.npz", images=IMAGES[:2], labels=objects)
    with pytest.raises(InputError, match=r"labels.npy .* holds Python objects"):
        load_data(str(tmp_path / "a.npz"))
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Payload(victim)))
    with pytest.raises(InputError, match="damaged"):
        load_data(str(tmp_path / "b.npz"))
    assert not victim.exists()


def npy(header: str, content: bytes) -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


def test_an_array_that_claims_more_than_it_holds_sets_no_memory_aside(tmp_path):
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (10000000000000,), }"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("images.npy", npy(header, b"abc"))
        archive.writestr("labels.npy", npy(header, b"abc"))
    with pytest.raises(InputError, match="but holds something else"):
        load_data(str(tmp_path / "a.npz"))
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("images.npy", b"no array")
        archive.writestr("labels.npy", b"no array")
    with pytest.raises(InputError, match="is not an array"):
        load_data(str(tmp_path / "b.npz"))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"pictures": IMAGES, "labels": LABELS}, "no array images or .* arrays are pictures, lab"),
        ({"images": IMAGES}, "no array labels or y"),
        ({"images": IMAGES, "labels": LABELS[:4]}, "5 samples and the labels have shape"),
        ({"images": IMAGES, "labels": LABELS + np.inf}, "label of sample 0 .* is inf; give whole"),
        ({"images": IMAGES, "labels": LABELS + np.nan}, "label of sample 0 .* is nan; give whole"),
        ({"images": IMAGES + np.nan, "labels": LABELS}, "sample 0 .* not a finite number"),
        ({"images": IMAGES.astype(int) * 100, "labels": LABELS}, "0 to 255"),
        ({"images": IMAGES[:, 0] + 1e39, "labels": LABELS}, "sample 0 .* infinite or too large"),
        ({"images": LABELS, "labels": LABELS}, "shape \\(5,\\)"),
        ({"images": IMAGES[:0], "labels": LABELS[:0]}, "at least one"),
        (
            {"images": IMAGES, "labels": LABELS.astype(float) / 2},
            "sample 1 .* is 4.5; .*label_above",
        ),
        ({"images": IMAGES, "labels": LABELS * np.nan}, "sample 0 .* is nan"),
        ({"images": IMAGES, "labels": LABELS.astype(int) - 1}, "sample 0 .* is -1"),
        (
            {"images": IMAGES, "labels": LABELS.astype(int) * 10**6},
            "sample 1 .* must lie in 0 to 9999",
        ),
        ({"images": IMAGES, "labels": LABELS * 0}, "all samples of a.npz have one label"),
        ({"images": IMAGES, "labels": LABELS * 1j}, "whole numbers or texts"),
        ({"images": IMAGES.astype(str), "labels": LABELS}, "inputs of a.npz must be numbers"),
        ({"x": IMAGES[:, 0] / np.float32(0.1), "y": LABELS, "sites": LABELS[:2]}, "sites must be"),
        ({"images": IMAGES, "labels": LABELS, "classes": ["a", "b"]}, "must lie in 0 to 1"),
    ],
)
def test_bad_arrays_are_refused_with_a_sentence(tmp_path, arrays, words):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError, match=words) as caught:
        load_data(str(tmp_path / "a.npz"))
    assert "\n" not in str(caught.value)


def test_npz_files_may_have_sites_and_labels_in_words(tmp_path):
    np.savez(
        tmp_path / "a.npz",
        X=IMAGES[:, :, 0] / 2,
        illness=["flu", "none", "flu", "cold", "none"],
        site=["b", "a", "a", "b", "c"],
        age=[1, 2, 3, 4, 5],
    )
    found = load_data(str(tmp_path / "a.npz"), label="illness")
    assert found.classes == ("cold", "flu", "none")
    assert found.labels.tolist() == [1, 2, 1, 0, 2]
    assert found.site_names == ("a", "b", "c")
    assert found.sites.tolist() == [1, 0, 0, 1, 2]
    assert [column.name for column in found.columns] == ["column 0", "column 1", "column 2"]
    old = load_data(str(tmp_path / "a.npz"), label="age", label_above=3)
    assert old.labels.tolist() == [0, 0, 0, 1, 1]
    assert old.classes == ("age <= 3", "age > 3")


TABLE = """site, age ,colour,kind,ill
north,50,red,1,no
south,,blue,2,yes

north,60,,1,yes
south,70,red,3,no
"""


def table(tmp_path, text, **options):
    (tmp_path / "t.csv").write_text(text)
    return load_data(str(tmp_path / "t.csv"), **{"label": "ill", "site": "site", **options})


def test_tables_are_read_with_their_gaps(tmp_path):
    found = table(tmp_path, TABLE)
    assert found.classes == ("no", "yes")
    assert found.labels.tolist() == [0, 1, 1, 0]
    assert found.site_names == ("north", "south")
    assert found.sites.tolist() == [0, 1, 0, 1]
    age, colour, kind = found.columns
    assert age == Column("age", None, gaps=True)
    assert colour == Column("colour", ("blue", "red"), gaps=True)
    assert kind == Column("kind", None, gaps=False)
    expected = [[50, 1, 1], [np.nan, 0, 2], [60, np.nan, 1], [70, 1, 3]]
    assert np.array_equal(found.inputs, np.array(expected, dtype=np.float32), equal_nan=True)
    semicolons = table(tmp_path, TABLE.replace(",", ";"))
    assert semicolons.sha256 == found.sha256


def test_columns_may_be_left_out_or_read_as_kinds(tmp_path):
    found = table(tmp_path, TABLE, categories=["kind"], without=["age"])
    assert [column.name for column in found.columns] == ["colour", "kind"]
    assert found.columns[1].levels == ("1", "2", "3")
    assert found.input_shape == (2 + 3,)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("", {}, "is empty; it must have a line"),
        ("site,age,ill\n", {}, "no rows below its header"),
        (TABLE, {"label": None}, "which column .* learned .*site, age, colour, kind, ill"),
        (TABLE, {"label": "sick"}, "no column 'sick' for the label; its columns are site, age"),
        (TABLE, {"site": "place"}, "no column 'place' for the site"),
        (TABLE, {"without": ["place"]}, "no column 'place' to leave out"),
        (TABLE, {"categories": ["place"]}, "no column 'place'; its columns are"),
        (TABLE, {"without": ["age", "colour", "kind"]}, "no column to learn from"),
        (TABLE, {"label": "colour"}, "line 5 .* has no label \\(colour is empty\\)"),
        (TABLE, {"site": "age"}, "line 3 .* has no site"),
        (TABLE.replace("60", "old"), {}, 'line 5 .* has "old" in column age'),
        (TABLE.replace("60", "inf"), {}, 'line 5 .* has "inf" in column age'),
        (TABLE.replace("60", "nan"), {}, 'line 5 .* has "nan" in column age.*leave the cell empty'),
        (TABLE.replace("60", "1e39"), {}, 'line 5 .* has "1e39" in column age'),
        (TABLE.replace("60", "6_0"), {}, 'line 5 .* has "6_0" in column age'),
        (TABLE.replace("60,,1", "60,1"), {}, "line 5 .* has 4 cells, the header 5"),
        (TABLE.replace("kind", "age"), {}, "the column 'age' twice"),
        (TABLE.replace(",yes", ",no"), {}, "all samples of t.csv have one label"),
        (TABLE, {"label_above": 1}, "labels that are numbers; ill .* are not"),
        (TABLE, {"label": "kind", "label_above": float("nan")}, "finite number; got nan"),
        ("ill,a\n" + "x,\ny,\n", {"site": None}, "column a .* is empty"),
        ("ill,a\n" + "".join(f"{n % 2},t{n}\n" for n in range(51)), {"site": None}, "51 different"),
        ("ill,a\n" + "".join(f"{n}.5,{n}\n" for n in range(51)), {"site": None}, "is an amount"),
        ("ill,a\n0," + "1" * 200_000 + "\n", {"site": None}, "not CSV"),
    ],
)
def test_bad_tables_are_refused_with_a_sentence(tmp_path, text, options, words):
    with pytest.raises(InputError, match=words) as caught:
        table(tmp_path, text, **options)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"ill,a\n\xff\xfe,1\n")
    with pytest.raises(InputError, match="not a text file"):
        load_data(str(tmp_path / "t.csv"), label="ill")


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("mnist", {}, "'mnist' is not a known data set: use \"digits\""),
        ("a.npz", {"path": "b"}, "give a.npz or path=b, not both"),
        ("digits", {"label": "x"}, "npz and CSV files, not in digits"),
        ("a.npz", {"without": ["x"]}, "a.npz has no named columns"),
    ],
)
def test_options_that_do_not_go_together_are_refused(source, options, words):
    with pytest.raises(InputError, match=words):
        load_data(source, **options)


def test_digits_are_always_there():
    digits = load_data()
    assert digits.inputs.shape == (1797, 8, 8)
    assert digits.input_shape == (1, 8, 8)
    assert digits.inputs.min() == 0
    assert digits.inputs.max() == 1
    assert np.bincount(digits.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_without_scikit_learn_digits_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"fedaccord\[train\]"):
        load_data("digits")


def test_the_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    digits, found = load_digits(), load_data("digits")
    assert np.array_equal(found.inputs, digits.images.astype(np.float32) / np.float32(16))
    assert np.array_equal(found.labels, digits.target)


def test_a_data_set_cannot_be_changed_and_knows_its_content():
    given = IMAGES.copy()
    one = Dataset(given, LABELS, source="mine")
    given[0] = 7
    assert np.array_equal(one.inputs, IMAGES)
    with pytest.raises(ValueError, match="read-only"):
        one.labels[0] = 1
    assert one.sha256 == Dataset(IMAGES, LABELS.astype(int), source="yours").sha256
    assert one.sha256 != Dataset(given, LABELS).sha256
    assert one.sha256 != Dataset(IMAGES, LABELS[::-1]).sha256
    assert one.sha256 != Dataset(IMAGES, LABELS, sites=LABELS).sha256
    assert repr(one) == "Dataset(5 points, 10 classes, mine)"
    assert one.to_dict()["sha256"] == one.sha256
    assert "2 sites" in repr(Dataset(IMAGES, LABELS, sites=["a", "b", "a", "a", "a"]))
    with pytest.raises(InputError, match="'x' among the labels of arrays is none of a, b"):
        Dataset(IMAGES[:2], ["x", "a"], classes=["a", "b"])
    assert Dataset(IMAGES[:2], ["a", "b"], classes=["b", "a"]).labels.tolist() == [1, 0]


@given(st.lists(st.integers(1, 20), max_size=4), st.integers(0, 3))
def test_pools_are_disjoint_and_lose_no_point(sizes, seed):
    whole = Dataset(np.arange(100, dtype=np.float32)[:, None], np.arange(100) % 2)
    pools = whole.split(*sizes, seed=seed)
    assert [len(pool) for pool in pools] == [*sizes, 100 - sum(sizes)]
    everything = np.concatenate([pool.inputs[:, 0] for pool in pools])
    assert sorted(everything) == list(range(100))
    for pool in pools:
        assert np.array_equal(pool.labels, pool.inputs[:, 0] % 2)


def test_pools_depend_on_the_seed_and_must_leave_a_rest():
    whole = Dataset(np.arange(100, dtype=np.float32)[:, None], np.arange(100) % 2)
    assert whole.split(50, seed=1)[0].sha256 == whole.split(50, seed=1)[0].sha256
    assert whole.split(50, seed=1)[0].sha256 != whole.split(50, seed=2)[0].sha256
    for sizes in ((60, 40), (0,), (101,)):
        with pytest.raises(InputError, match="cannot be taken from 100 samples"):
            whole.split(*sizes)


def test_without_a_rest_pools_may_take_every_point():
    whole = Dataset(np.arange(100, dtype=np.float32)[:, None], np.arange(100) % 2)
    one, two = whole.split(60, 40, seed=1, rest=False)
    assert sorted([*one.inputs[:, 0], *two.inputs[:, 0]]) == list(range(100))
    # The division itself does not depend on whether the rest is asked for.
    with_rest = whole.split(60, 30, seed=1)
    assert [p.sha256 for p in whole.split(60, 30, seed=1, rest=False)] == [
        p.sha256 for p in with_rest[:2]
    ]
    assert two.sha256 == whole.split(60, seed=1)[1].sha256
    with pytest.raises(InputError, match=r"pools of 60 \+ 41 samples cannot be taken from 100"):
        whole.split(60, 41, rest=False)


def test_bytes_are_scaled_and_floats_are_not():
    scaled = Preparation.fit(IMAGES, None).apply(np.array([[[0, 255]]], dtype=np.uint8))
    assert scaled.shape == (1, 1, 1, 2)
    assert scaled.dtype == np.float32
    assert scaled.ravel() == pytest.approx([-0.1307 / 0.3081, (1 - 0.1307) / 0.3081], rel=1e-5)
    floats = np.array([[[[0.0, 2.5]]]], dtype=np.float32)
    assert np.array_equal(Preparation.fit(floats, None).apply(floats), floats)


def test_gaps_are_filled_from_the_training_points_alone(tmp_path):
    found = table(tmp_path, TABLE)
    assert found.input_shape == (2 + 2 + 1,)
    # Ages 50, missing, 60: the median is 55, so the mean 55 and the deviation sqrt(50 / 3).
    prepared = Preparation.fit(found.inputs[:3], found.columns).apply(found.inputs)
    age, gap, blue, red, kind = prepared.T
    spread = np.sqrt(50 / 3)
    assert age == pytest.approx([-5 / spread, 0, 5 / spread, 15 / spread], rel=1e-5)
    assert gap.tolist() == [0, 1, 0, 0]
    assert blue.tolist() == [0, 1, 0, 0]
    assert red.tolist() == [1, 0, 0, 1]
    assert kind[:3].mean() == pytest.approx(0, abs=1e-6)
    assert kind[:3].std() == pytest.approx(1, rel=1e-5)
    assert np.isfinite(prepared).all()


def test_gaps_are_filled_with_the_median_which_one_wild_value_does_not_move():
    inputs = np.array([[1], [2], [300], [np.nan]], dtype=np.float32)
    prepared = Preparation.fit(inputs, Dataset(inputs, [0, 1, 0, 1]).columns).apply(inputs)
    assert prepared[3].tolist() == [prepared[1, 0], 1]


def test_a_column_that_says_nothing_stays_finite():
    inputs = np.array([[np.nan, 3, 1e6], [np.nan, 3, 1e6], [5, 4, 1e6]], dtype=np.float32)
    columns = Dataset(inputs, [0, 1, 0]).columns
    prepared = Preparation.fit(inputs[:2], columns).apply(inputs)
    assert prepared.tolist() == [[0, 1, 0, 0], [0, 1, 0, 0], [5, 0, 1, 0]]
    with pytest.raises(InputError, match="no training samples"):
        Preparation.fit(inputs[:0], columns)


def test_four_real_hospitals_are_read():
    path = real_file("heart-disease-4-sites.csv")
    hearts = load_data(str(path), label="num", site="site", label_above=0)
    counts = dict(zip(hearts.site_names, np.bincount(hearts.sites).tolist(), strict=True))
    assert counts == {"cleveland": 303, "hungarian": 294, "switzerland": 123, "va": 200}
    assert np.bincount(hearts.labels).tolist() == [411, 509]
    assert len(load_data(str(path), label="num", site="site").classes) == 5
    prepared = Preparation.fit(hearts.inputs, hearts.columns).apply(hearts.inputs)
    assert prepared.shape == (920, *hearts.input_shape)
    assert np.isfinite(prepared).all()


def test_real_letters_are_read():
    letters = load_data("emnist", path=real_file("emnist47.npz"))
    assert letters.inputs.shape == (112373, 28, 28)
    assert len(letters.classes) == 47
    assert np.bincount(letters.labels).min() == 1012


def test_saved_arrays_come_back_and_other_files_are_told_apart(tmp_path):
    path = tmp_path / "a.npz"
    npz.save_arrays(path, {"a/b": IMAGES}, {"made": "here"})
    arrays, notes = npz.load_arrays(path, "things", ("a/b", "made"))
    assert np.array_equal(arrays["a/b"], IMAGES)
    assert notes == {"made": "here"}
    with pytest.raises(InputError, match="does not hold things"):
        npz.load_arrays(path, "things", ("c",))
    np.savez(path, a=IMAGES)
    with pytest.raises(InputError, match="does not hold things"):
        npz.load_arrays(path, "things", ())
    with pytest.raises(InputError, match="cannot write"):
        npz.save_arrays(tmp_path / "no" / "a.npz", {}, {})
    for notes in ("5", "[" * 100_000):
        np.savez(path, notes=np.array(notes))
        with pytest.raises(InputError, match="does not hold things"):
            npz.load_arrays(path, "things", ())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npz"]


def test_an_encrypted_archive_is_refused(tmp_path):
    buffer = io.BytesIO(write_zip(tmp_path / "gzip.zip", EMNIST).read_bytes())
    content = bytearray(buffer.getvalue())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = -1
        while (place := content.find(mark, place + 1)) >= 0:
            content[place + offset] |= 1
    (tmp_path / "gzip.zip").write_bytes(content)
    with pytest.raises(InputError, match="save it unencrypted"):
        load_data("emnist", path=tmp_path / "gzip.zip")


def written(tmp_path, labels):
    file = tmp_path / "points.csv"
    rows = [f"{n % 7},{label},{'AB'[n % 2]}" for n, label in enumerate(labels)]
    file.write_text("\n".join(["a,y,s", *rows]) + "\n")
    return str(file)


@pytest.mark.parametrize("word", ["nan", "NaN", "inf"])
@pytest.mark.parametrize("above", [None, 3.0])
def test_a_label_that_is_no_number_is_refused_with_its_line(tmp_path, word, above):
    file = written(tmp_path, [0, 1, word, 1, 5, 6])
    with pytest.raises(InputError, match=f"line 4 of .* has the label {word}"):
        load_data(file, label="y", site="s", label_above=above)


@pytest.mark.parametrize("above", [-1, 300])
def test_a_threshold_that_all_labels_are_on_one_side_of_is_refused(tmp_path, above):
    file = written(tmp_path, range(10))
    with pytest.raises(InputError, match=f"label_above = {above} gives all samples .* from 0 to 9"):
        load_data(file, label="y", site="s", label_above=above)


def test_one_column_cannot_be_label_and_site(tmp_path):
    with pytest.raises(InputError, match="cannot be both the label and the site"):
        load_data(written(tmp_path, [0, 1, 0, 1]), label="y", site="y")
