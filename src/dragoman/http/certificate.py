"""A certificate of our own for TLS: made once, kept beside the data, known by its fingerprint."""

import hashlib
import os
import shutil
import ssl
import subprocess
import tempfile
import time

DAYS = 825  # browsers take none that live longer
# Of the system, not of a project: an agent may have written that one.
_PLACES = "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin:/run/current-system/sw/bin"
RENEW_SECONDS = 30 * 24 * 3600


class NoCertificate(Exception):
    """Neither the library nor the program that could make one is here."""


def own_paths(data_dir: str) -> tuple[str, str]:
    """Where our certificate and its key are."""
    folder = os.path.join(data_dir, "tls")
    return os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")


def own(data_dir: str, names: list[str]) -> tuple[str, str]:
    """The paths of our certificate and its key, made when there is none or it ends soon.

    Raises NoCertificate, OSError.
    """
    cert, key = own_paths(data_dir)
    if not _lasts(cert, key):
        os.makedirs(os.path.dirname(cert), mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(cert)) as folder:
            fresh = os.path.join(folder, "cert"), os.path.join(folder, "key")
            _make(*fresh, names)
            os.chmod(fresh[1], 0o600)
            os.replace(fresh[1], key)
            os.replace(fresh[0], cert)
    return cert, key


def fingerprint(path: str) -> str:
    """SHA-256 of a file's first certificate, as browsers show it. Raises OSError, ValueError."""
    with open(path, encoding="ascii") as file:
        text = file.read()
    end = "-----END CERTIFICATE-----"
    first = text[text.index("-----BEGIN CERTIFICATE-----") : text.index(end) + len(end)]
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).hexdigest().upper()
    return ":".join(digest[at : at + 2] for at in range(0, 64, 2))


def _lasts(cert: str, key: str) -> bool:
    """Whether both files are there, belong together and do not end soon."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key)
        context.load_verify_locations(cert)
    except (OSError, ssl.SSLError):
        return False
    ends = [ssl.cert_time_to_seconds(str(one["notAfter"])) for one in context.get_ca_certs()]
    return bool(ends) and ends[0] > time.time() + RENEW_SECONDS


def _make(cert: str, key: str, names: list[str]) -> None:
    alternatives = ",".join(f"{'IP' if _is_address(one) else 'DNS'}:{one}" for one in names)
    program = shutil.which("openssl", path=_PLACES if os.name == "posix" else None)
    if program is None:
        raise NoCertificate(
            "the program openssl is not here to make one; install it, or bring a certificate"
        )
    done = subprocess.run(
        [
            program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", str(DAYS), "-subj", "/CN=dragoman", "-keyout", key, "-out", cert,
            "-addext", f"subjectAltName={alternatives}",
        ],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    if done.returncode:
        raise NoCertificate(f"openssl could not make one: {done.stderr.strip()[-300:]}")


def _is_address(name: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
