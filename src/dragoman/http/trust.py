"""Whose certificates are believed: SSL_CERT_FILE and SSL_CERT_DIR, else the system's."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .port import BadRequest

if TYPE_CHECKING:
    import ssl


def trusting(file: str = "", env: Mapping[str, str] = os.environ) -> "ssl.SSLContext":
    """A context that believes in this file of certificates, or in the usual ones."""
    import ssl

    folder = ""
    if not file:
        file, folder = env.get("SSL_CERT_FILE", ""), env.get("SSL_CERT_DIR", "")
        for name, path, there in (
            ("SSL_CERT_FILE", file, os.path.isfile(file)),
            ("SSL_CERT_DIR", folder, any(map(os.path.isdir, folder.split(os.pathsep)))),
        ):
            if path and not there:
                raise BadRequest(f"{name} names {path}, which is not there")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    if not file and not folder:
        context.load_default_certs()
        if not _has_some(context):
            import certifi  # a Python that was built without a system's store

            file = certifi.where()
    try:
        if file:
            context.load_verify_locations(cafile=file)
        for one in filter(os.path.isdir, folder.split(os.pathsep)):
            context.load_verify_locations(capath=one)
    except (OSError, ssl.SSLError) as error:
        raise BadRequest(f"the certificates in {file or folder} cannot be used: {error}") from None
    return context


def _has_some(context: "ssl.SSLContext") -> bool:
    import ssl

    found = ssl.get_default_verify_paths().capath  # read when needed, so not counted as loaded
    return bool(context.cert_store_stats()["x509"]) or bool(found and os.listdir(found))
