"""Keys for a deployment: a certificate authority, a server certificate, a key pair per client.

    FOLDER/ca.crt              what everybody trusts
    FOLDER/ca.key              signs server certificates; nobody needs it once they are signed
    FOLDER/server.crt, .key    the SuperLink's
    FOLDER/clients/NAME.key    one client's alone
    FOLDER/clients/NAME.pub    what the SuperLink registers as that client

An operator that makes the keys of all clients on one machine could pass for any of them: do that
for trials only. In production, every client makes its own keys and sends NAME.pub.
"""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
import re
import tempfile
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fedaccord.errors import InputError

HOSTS = ("localhost", "127.0.0.1")
DAYS = 365
LONGEST_FILE_NAME = 60
LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")


@dataclass(frozen=True)
class Keys:
    """Where the keys of a deployment are.

    folder: that has them all.
    clients: for each requested client, its private key; the public one ends in .pub.
    made: the files that were not there before.
    """

    folder: Path
    clients: Mapping[str, Path]
    made: tuple[Path, ...] = ()

    @property
    def authority(self) -> Path:
        """The certificate that everybody trusts."""
        return self.folder / "ca.crt"

    @property
    def authority_key(self) -> Path:
        """The key that signs server certificates."""
        return self.folder / "ca.key"

    @property
    def certificate(self) -> Path:
        """The server's certificate."""
        return self.folder / "server.crt"

    @property
    def certificate_key(self) -> Path:
        """The server's private key."""
        return self.folder / "server.key"

    def public(self, name: str) -> Path:
        """Return the path of the public key of a client."""
        return self.clients[name].with_suffix(".pub")


def make_keys(
    folder: str | Path, names: Sequence[str], *, hosts: Sequence[str] | None = None
) -> Keys:
    """Make the keys that are not there yet, and never write over one that is.

    A folder that has an authority and a server certificate keeps them, so that clients can be
    added later. A client that has a key already is refused, and then nothing at all is written.

    folder: where to; made if need be.
    names: of the clients.
    hosts: the names or addresses under which clients reach the server; localhost and 127.0.0.1
        unless told otherwise.
    """
    clients = {name: Path(folder) / "clients" / f"{file_name(name)}.key" for name in names}
    keys = Keys(Path(folder), MappingProxyType(clients))
    _check_names(names, keys)
    _check_server_files(keys, hosts)
    alternatives = [_alternative(host) for host in hosts or HOSTS]
    try:
        (keys.folder / "clients").mkdir(parents=True, exist_ok=True)
        made = [*_write_server(keys, alternatives), *_write_clients(keys)]
    except OSError as error:
        raise InputError(f"cannot write keys to {folder}: {error.strerror or error}") from None
    return Keys(keys.folder, keys.clients, tuple(made))


def file_name(name: str) -> str:
    """Return a client's name as a name of a file, other names giving others.

    A name of letters, digits, - and _ is its own; any other is made of what it has of these, with
    a digest of the whole name at its end.
    """
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    kept = re.sub(r"[^A-Za-z0-9_]+", "-", letters).strip("-")[:LONGEST_FILE_NAME]
    if kept == name:
        return name
    return f"{kept or 'client'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _check_names(names: Sequence[str], keys: Keys) -> None:
    files: dict[str, str] = {}
    for name, path in keys.clients.items():
        if not name.strip() or not name.isprintable():
            raise InputError(f"a client's name must have visible letters; got {name!r}")
        # Some file systems take capital letters for small ones.
        other = files.setdefault(path.name.lower(), name)
        if other != name:
            raise InputError(f"the names {other} and {name} are too similar; change one")
        for file in (path, path.with_suffix(".pub")):
            if os.path.lexists(file):
                raise InputError(
                    f"{name} has a key already, {file}, which is not overwritten; leave {name} "
                    "out, or move the file away if it is no longer needed"
                )
    if len(keys.clients) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{twice} is named twice; give every client a name of its own")


def _check_server_files(keys: Keys, hosts: Sequence[str] | None) -> None:
    """Refuse a folder from which something is missing, or whose certificate is for other hosts."""
    pair = (keys.certificate, keys.certificate_key)
    there = {p: os.path.lexists(p) for p in (keys.authority, keys.authority_key, *pair)}
    if hosts and any(there[path] for path in pair):
        raise InputError(
            f"{keys.folder} has a server certificate already, which is not overwritten; leave "
            "--host out, or move server.crt and server.key away to make new ones"
        )
    missing = [path.name for path in pair if not there[path]]
    if len(missing) == 1:
        raise InputError(
            f"{keys.folder} lacks {missing[0]}; put it back, or move the other file away"
        )
    if missing and there[keys.authority] != there[keys.authority_key]:
        absent = next(p.name for p in (keys.authority, keys.authority_key) if not there[p])
        raise InputError(
            f"{keys.folder} lacks {absent}, which is needed to make a server certificate; put it "
            "back, or name a new folder"
        )
    if not missing and not there[keys.authority]:
        raise InputError(f"{keys.folder} lacks ca.crt; put it back, or name a new folder")


def _write_server(keys: Keys, alternatives: Sequence[x509.GeneralName]) -> list[Path]:
    """Write a server certificate where there is none, and an authority if it takes one."""
    if keys.certificate.exists():
        return []
    made = []
    if not keys.authority.exists():
        signer = ec.generate_private_key(ec.SECP384R1())
        _write_new(keys.authority_key, _private_pem(signer), 0o600)
        own = _certify("fedaccord certificate authority", signer.public_key(), signer)
        _write_new(keys.authority, own.public_bytes(Encoding.PEM))
        made = [keys.authority, keys.authority_key]
    try:
        loaded = load_pem_private_key(keys.authority_key.read_bytes(), password=None)
        authority = x509.load_pem_x509_certificate(keys.authority.read_bytes())
    except (ValueError, TypeError) as error:
        raise InputError(f"cannot read the authority in {keys.folder}: {error}") from None
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise InputError(f"{keys.authority_key} is not an elliptic-curve key; name a new folder")
    key = ec.generate_private_key(ec.SECP384R1())
    _write_new(keys.certificate_key, _private_pem(key), 0o600)
    certificate = _certify(
        "fedaccord server",
        key.public_key(),
        loaded,
        x509.SubjectAlternativeName(alternatives),
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
        x509.AuthorityKeyIdentifier.from_issuer_public_key(loaded.public_key()),
        issuer=authority.subject,
    )
    _write_new(keys.certificate, certificate.public_bytes(Encoding.PEM))
    return [*made, keys.certificate, keys.certificate_key]


def _write_clients(keys: Keys) -> list[Path]:
    """Write each client's pair, in the format that Flower reads: OpenSSH's, on the curve P-384."""
    made = []
    for name, path in keys.clients.items():
        key = ec.generate_private_key(ec.SECP384R1())
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        _write_new(path, private, 0o600)
        _write_new(keys.public(name), public + b"\n")
        made += [path, keys.public(name)]
    return made


def _certify(
    name: str,
    key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    *more: x509.ExtensionType,
    issuer: x509.Name | None = None,
) -> x509.Certificate:
    """Sign the certificate of a server, or of an authority where nobody else is the issuer."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    is_authority = issuer is None
    usage = x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    constraints = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # Clocks of hospitals differ.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(constraints, critical=True)
        .add_extension(usage, critical=True)
    )
    for extension in (x509.SubjectKeyIdentifier.from_public_key(key), *more):
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(signer, hashes.SHA384())


def _alternative(host: str) -> x509.GeneralName:
    """Read a host's name or address."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        labels = host.split(".")
        # What is all digits at its end is an address with a slip in it.
        if not all(map(LABEL.fullmatch, labels)) or labels[-1].isdigit() or len(host) > 253:
            raise InputError(
                f"--host must be a host's name such as flower.example.org, or an address; got "
                f"{host!r}"
            ) from None
        return x509.DNSName(host)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write_new(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a whole file that was not there, or none; its first byte is as private as its last."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".fedaccord-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        # A link, unlike a move, fails where another process was quicker.
        os.link(temporary, path)
    except FileExistsError:
        raise InputError(f"{path} exists already and is not overwritten") from None
    finally:
        os.unlink(temporary)
