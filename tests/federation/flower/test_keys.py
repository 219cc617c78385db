"""Keys for a deployment: as Flower reads them, private, safe to name, never written over."""

import os
import ssl
import stat
import subprocess
import threading
import tomllib
from pathlib import Path

import pytest
from commands import assert_refused, run
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from fedaccord.errors import InputError
from fedaccord.federation.flower.keys import file_name, make_keys

AWKWARD = [
    "St. Mary's/../x",
    "..",
    "/etc/passwd",
    "Zürich",
    "Харків",
    "-rf",
    "a b",
    "x" * 300,
    "C:x",
]


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def handshake(keys, host: str) -> None:
    """Shake hands over TLS with a server that has the keys, as a client that knows the host."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(keys.certificate, keys.certificate_key)
    client = ssl.create_default_context(cafile=keys.authority)
    # What newer Pythons ask of certificates.
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for turn in range(10):
        try:
            ends[turn % 2].do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert ends[0].getpeercert()


def test_a_client_trusts_the_server_under_its_hosts_and_no_others(tmp_path):
    keys = make_keys(tmp_path, ["Harbour"])
    handshake(keys, "localhost")
    handshake(keys, "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for 'flower"):
        handshake(keys, "flower.example.org")


def test_hosts_are_names_and_addresses_of_both_kinds(tmp_path):
    keys = make_keys(tmp_path, [], hosts=["flower.example.org", "10.0.0.7", "::1"])
    for host in ("flower.example.org", "10.0.0.7", "::1"):
        handshake(keys, host)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(keys, "localhost")


def test_an_authority_of_somebody_else_is_not_trusted(tmp_path):
    keys, others = make_keys(tmp_path / "ours", []), make_keys(tmp_path / "theirs", [])
    others.authority.replace(keys.authority)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(keys, "localhost")


def test_openssl_finds_nothing_wrong_with_the_certificate(tmp_path):
    keys = make_keys(tmp_path, [])
    command = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver"]
    done = subprocess.run(
        [*command, "-CAfile", keys.authority, keys.certificate], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_server_certificate_cannot_sign_others(tmp_path):
    keys = make_keys(tmp_path, [])
    certificate = x509.load_pem_x509_certificate(keys.certificate.read_bytes())
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_each_client_has_a_pair_on_the_curve_that_flower_asks_for(tmp_path):
    keys = make_keys(tmp_path, ["Harbour", "Hill"])
    numbers = set()
    for name, path in keys.clients.items():
        private = load_ssh_private_key(path.read_bytes(), None)
        public = load_ssh_public_key(keys.public(name).read_bytes())
        assert isinstance(private.curve, ec.SECP384R1)
        assert private.public_key().public_numbers() == public.public_numbers()
        numbers.add(public.public_numbers())
    assert len(numbers) == 2


def test_flower_itself_reads_the_keys(tmp_path):
    from argparse import Namespace

    from flwr.cli.supernode.register import try_load_public_key
    from flwr.supercore.primitives.asymmetric import public_key_to_bytes
    from flwr.supernode.cli.flower_supernode import _try_setup_client_authentication

    keys = make_keys(tmp_path, ["Harbour"])
    given = Namespace(
        auth_supernode_private_key=str(keys.clients["Harbour"]), auth_supernode_public_key=None
    )
    _, public = _try_setup_client_authentication(given)
    assert public_key_to_bytes(public) == try_load_public_key(keys.public("Harbour"))


def test_private_keys_are_private_and_the_others_are_not(tmp_path):
    before = os.umask(0)
    try:
        keys = make_keys(tmp_path, ["Harbour"])
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in keys.made}
    assert modes == {
        **dict.fromkeys(["ca.key", "server.key", "Harbour.key"], 0o600),
        **dict.fromkeys(["ca.crt", "server.crt", "Harbour.pub"], 0o644),
    }


def test_nothing_is_left_beside_the_keys(tmp_path):
    keys = make_keys(tmp_path, ["Harbour"])
    assert sorted(keys.made) == sorted(path for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", AWKWARD)
def test_whatever_a_client_is_called_its_files_stay_in_their_folder(tmp_path, name):
    keys = make_keys(tmp_path / "keys", [name])
    for path in (keys.clients[name], keys.public(name)):
        assert path.resolve().parent == (tmp_path / "keys" / "clients").resolve()
        assert path.name.isascii() and path.name[0].isalnum() and len(path.name) < 100
    assert {path.name for path in tmp_path.iterdir()} == {"keys"}


def test_names_that_look_alike_have_files_of_their_own():
    alike = ["St Mary", "St. Mary", "St-Mary", "st mary", "Stmary", "St/Mary", "Zurich", "Zürich"]
    assert len({file_name(name).lower() for name in alike}) == len(alike)
    assert file_name("St-Mary") == "St-Mary"


def test_names_that_some_systems_take_for_one_are_refused(tmp_path):
    with pytest.raises(InputError, match="Hill and hill are too similar"):
        make_keys(tmp_path / "keys", ["Hill", "hill"])
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["Hill", "Hill"], "Hill is named twice"),
        ([" "], "visible letters"),
        (["a\nb"], "visible letters"),
        (["\u202eevil"], "visible letters"),
    ],
)
def test_names_that_are_none_are_refused(tmp_path, names, words):
    with pytest.raises(InputError, match=words):
        make_keys(tmp_path / "keys", names)
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("host", ["", "a b", "x_y", "-a", "256.1.1.1", "http://a", "a..b", "ü.org"])
def test_hosts_that_are_none_are_refused(tmp_path, host):
    with pytest.raises(InputError, match="host's name"):
        make_keys(tmp_path / "keys", ["Harbour"], hosts=[host])
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("ending", [".key", ".pub"])
def test_a_key_that_is_there_is_not_written_over_and_nothing_else_is_made(tmp_path, ending):
    keys = make_keys(tmp_path, ["Harbour"])
    keys.clients["Harbour"].with_suffix(".pub" if ending == ".key" else ".key").unlink()
    before = everything(tmp_path)
    with pytest.raises(InputError, match="Harbour has a key already"):
        make_keys(tmp_path, ["Hill", "Harbour"])
    assert everything(tmp_path) == before


def test_a_dangling_link_in_the_place_of_a_key_is_not_followed(tmp_path):
    (tmp_path / "keys" / "clients").mkdir(parents=True)
    (tmp_path / "keys" / "clients" / "Hill.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="Hill has a key already"):
        make_keys(tmp_path / "keys", ["Hill"])
    assert not (tmp_path / "elsewhere").exists()


def test_clients_can_be_added_under_the_same_authority(tmp_path):
    make_keys(tmp_path, ["Harbour"])
    before = everything(tmp_path)
    keys = make_keys(tmp_path, ["Hill"])
    assert {path.name for path in keys.made} == {"Hill.key", "Hill.pub"}
    after = everything(tmp_path)
    assert {name: after[name] for name in before} == before


def test_another_server_certificate_is_signed_by_the_same_authority(tmp_path):
    keys = make_keys(tmp_path, ["Harbour"])
    authority = keys.authority.read_bytes()
    with pytest.raises(InputError, match="has a server certificate already"):
        make_keys(tmp_path, [], hosts=["flower.example.org"])
    keys.certificate.unlink()
    keys.certificate_key.unlink()
    again = make_keys(tmp_path, [], hosts=["flower.example.org"])
    assert keys.authority.read_bytes() == authority
    handshake(again, "flower.example.org")


@pytest.mark.parametrize("kept_elsewhere", ["ca.key"])
def test_the_authoritys_key_may_be_kept_elsewhere(tmp_path, kept_elsewhere):
    make_keys(tmp_path, [])
    (tmp_path / kept_elsewhere).unlink()
    assert len(make_keys(tmp_path, ["Harbour"]).made) == 2


@pytest.mark.parametrize(
    "missing", [{"server.key"}, {"server.crt"}, {"ca.crt"}, {"ca.key", "server.crt", "server.key"}]
)
def test_a_folder_that_lacks_something_is_refused(tmp_path, missing):
    make_keys(tmp_path, [])
    for name in missing:
        (tmp_path / name).unlink()
    before = everything(tmp_path)
    with pytest.raises(InputError, match=f"lacks ({'|'.join(missing)})"):
        make_keys(tmp_path, ["Harbour"])
    assert everything(tmp_path) == before


def test_of_two_that_make_the_same_key_at_once_one_is_refused(tmp_path):
    """Both find nothing there; the slower one must not win."""
    make_keys(tmp_path, [])
    barrier, outcomes = threading.Barrier(4), []

    def make():
        barrier.wait()
        try:
            outcomes.append(make_keys(tmp_path, ["Hill"]))
        except InputError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(not isinstance(outcome, str) for outcome in outcomes) == 1
    private = load_ssh_private_key((tmp_path / "clients" / "Hill.key").read_bytes(), None)
    public = load_ssh_public_key((tmp_path / "clients" / "Hill.pub").read_bytes())
    assert private.public_key().public_numbers() == public.public_numbers()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write keys to .*file/keys: Not a directory"):
        make_keys(tmp_path / "file" / "keys", ["Harbour"])


def test_the_command_makes_keys_and_says_what_to_type_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("flower", "keys", "keys", "Harbour", "St. Mary's")
    assert done.code == 0
    assert done.stderr == ""
    assert "8 files made in keys" in done.stdout
    assert "flwr supernode register keys/clients/Harbour.pub" in done.stdout
    assert f'root-certificates = "{tmp_path / "keys" / "ca.crt"}"' in done.stdout
    # A shell reads the name back as it was.
    echoed = next(line for line in done.stdout.splitlines() if "register keys/clients/St" in line)
    shell = f'set -- {echoed}; for last; do :; done; printf %s "$last"'
    assert subprocess.check_output(["sh", "-c", shell], text=True) == "St. Mary's"
    assert (tmp_path / "keys" / "clients" / "Harbour.key").exists()


def test_the_command_refuses_in_one_sentence(tmp_path):
    folder = tmp_path / "keys"
    assert run("flower", "keys", folder, "Harbour").code == 0
    assert_refused(run("flower", "keys", folder, "Harbour"), "Harbour has a key already")
    assert_refused(run("flower", "keys", folder, "Hill", "--host", "a.b"), "leave --host out")
    assert_refused(run("flower", "keys", folder), "NAME")
    assert_refused(run("flower"), "Missing command")


def test_the_commands_host_is_in_the_certificate_and_in_what_to_type(tmp_path):
    done = run("flower", "keys", tmp_path, "Harbour", "--host", "flower.example.org")
    assert "--superlink flower.example.org:8000" in done.stdout
    handshake(make_keys(tmp_path, ["Hill"]), "flower.example.org")


def typed(line: str) -> list[str]:
    """Give what a shell makes of a line."""
    done = subprocess.check_output(["sh", "-c", f'set -- {line}; printf "%s\\0" "$@"'], text=True)
    return done.split("\0")[:-1]


def line_of(text: str, beginning: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(beginning))


@pytest.mark.parametrize("folder", ['a"b', "back\\slash", "Zürich", "dollar$x"])
def test_what_to_put_into_flowers_config_is_the_path_whatever_it_is_called(tmp_path, folder):
    done = run("flower", "keys", tmp_path / folder, "Harbour")
    written = tomllib.loads(line_of(done.stdout, "root-certificates"))
    assert written == {"root-certificates": str(tmp_path / folder / "ca.crt")}


def test_what_begins_with_a_dash_is_not_taken_for_an_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("flower", "keys", "--", "-keys", "-rf")
    assert done.code == 0
    register = typed(line_of(done.stdout, "flwr supernode register"))
    assert register[3].startswith("./-keys/clients/")
    assert register[-1] == "--name=-rf"
    for beginning in ("flower-superlink", "flower-supernode"):
        words = typed(line_of(done.stdout, beginning))
        assert [w for w in words if "-keys/" in w and not w.startswith("./-keys/")] == []
        assert any(w.startswith("./-keys/") for w in words)


def test_an_address_with_colons_stands_in_brackets(tmp_path):
    done = run("flower", "keys", tmp_path, "Harbour", "--host", "::1")
    assert typed(line_of(done.stdout, "flower-supernode"))[1:3] == ["--superlink", "[::1]:8000"]


@pytest.mark.parametrize("folder", ["two\nlines", "\x1b[2J", ""])
def test_a_folder_that_could_not_be_typed_again_is_refused(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    assert_refused(run("flower", "keys", folder, "Harbour"), "the folder")
    assert os.listdir(tmp_path) == []
