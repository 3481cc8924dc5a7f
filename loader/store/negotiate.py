"""Kerberos for WebHDFS: answers a request for `Negotiate` with a token of the system's GSSAPI library (MIT Kerberos).

The library finds the ticket itself: in the ticket cache (KRB5CCNAME), else with the keytab in KRB5_CLIENT_KTNAME.
HTTP: RFC 4559. Functions of the library: RFC 2744.
"""

from __future__ import annotations

import base64
import ctypes
import platform
from ctypes import POINTER, byref, c_char_p, c_size_t, c_uint32, c_void_p
from typing import Any, NoReturn
from urllib.parse import urlsplit

from loader.errors import StoreUnavailable, UsageError

_LIBRARIES = ("libgssapi_krb5.so.2", "libgssapi_krb5.dylib")
_SPNEGO, _KERBEROS = bytes.fromhex("2b0601050502"), bytes.fromhex("2a864886f712010202")
_HOST_SERVICE = bytes.fromhex("2a864886f71201020104")
_ERROR = 0xFFFF0000  # bits of a status that mean failure
_GSS_CODE, _MECHANISM_CODE = 1, 2
# Numbers of krb5.h: KRB5KRB_AP_ERR_TKT_EXPIRED, KRB5_KDC_UNREACH, KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN.
_EXPIRED, _NO_KDC, _UNKNOWN_SERVER = (number & 0xFFFFFFFF for number in (-1765328352, -1765328228, -1765328377))
_RENEW = "log in again: kinit USER@REALM; or name a keytab: export KRB5_CLIENT_KTNAME=FILE"
_ON_EXECUTORS = (
    "; if that machine runs executors of Spark, set spark.authenticate and spark.network.crypto.enabled to true in"
    " [spark.conf], and the driver hands them a token"
)


class _Buffer(ctypes.Structure):
    _fields_ = (("length", c_size_t), ("value", c_void_p))


class _Oid(ctypes.Structure):
    _fields_ = (("length", c_uint32), ("elements", c_char_p))


class Negotiate:
    """The authentication of a session of requests. Without Kerberos on the server it changes nothing.

    A server with Kerberos takes the user from the ticket, and refuses requests that name another one.

    Attributes:
        in_use: whether the server has asked for a token.
    """

    def __init__(self) -> None:
        self.in_use = False

    def __call__(self, request: Any) -> Any:
        """Prepare a request; requests calls this for each of them."""
        if self.in_use:
            request.url = _without_user(request.url)
        request.register_hook("response", self._answered)
        return request

    def _answered(self, response: Any, **options: Any) -> Any:
        """Send a request again with a token if the server asks for one. It then sends a cookie for later requests."""
        asked = "negotiate" in response.headers.get("WWW-Authenticate", "").lower()
        if response.status_code != 401 or not asked or "Authorization" in response.request.headers:
            return response
        response.close()
        request = response.request.copy()
        request.url = _without_user(request.url)
        host = urlsplit(request.url).hostname or ""
        request.headers["Authorization"] = f"Negotiate {base64.b64encode(token('HTTP', host)).decode()}"
        self.in_use = True
        again = response.connection.send(request, **options)
        again.history.append(response)
        return again


def token(service: str, host: str) -> bytes:
    """Return a token that proves to a service on a host who the user is.

    Raises:
        UsageError: there is no ticket, no library, or the realm does not know the service.
        StoreUnavailable: the ticket has expired, or the KDC does not answer.
    """
    library = _library()
    name = _imported(library, f"{service}@{host}")
    try:
        made, _ = _made(library, name, _SPNEGO)
        if made:
            return made
        # SPNEGO does not say why it found no mechanism.
        made, minor = _made(library, name, _KERBEROS)
        if made:
            return made
        _refuse(minor, _text(library, minor), f"{service}/{host}")
    finally:
        library.gss_release_name(byref(c_uint32()), byref(name))


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    kept = (part for part in parts.query.split("&") if not part.startswith("user.name="))
    return parts._replace(query="&".join(kept)).geturl()


def _library() -> Any:
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            failed = error
    raise UsageError(
        "HDFS asks for Kerberos, whose library is not installed",
        why=f"{failed}, on {platform.node()}",
        hint="install MIT Kerberos: apt-get install libgssapi-krb5-2 krb5-user; or dnf install krb5-workstation"
        + _ON_EXECUTORS,
    )


def _imported(library: Any, text: str) -> c_void_p:
    minor, name = c_uint32(), c_void_p()
    data = text.encode()
    given = _Buffer(len(data), ctypes.cast(c_char_p(data), c_void_p))
    major = library.gss_import_name(byref(minor), byref(given), byref(_oid(_HOST_SERVICE)), byref(name))
    if major & _ERROR:
        _refuse(minor.value, _text(library, minor.value), text)
    return name


def _made(library: Any, name: c_void_p, mechanism: bytes) -> tuple[bytes, int]:
    """Return the token, or no bytes and the number of the error."""
    minor, context, output = c_uint32(), c_void_p(), _Buffer()
    major = library.gss_init_sec_context(
        byref(minor),
        None,
        byref(context),
        name,
        byref(_oid(mechanism)),
        0,
        0,
        None,
        None,
        None,
        byref(output),
        None,
        None,
    )
    made = ctypes.string_at(output.value, output.length) if output.value else b""
    ignored = byref(c_uint32())
    library.gss_release_buffer(ignored, byref(output))
    if context:
        library.gss_delete_sec_context(ignored, byref(context), None)
    return (b"", minor.value) if major & _ERROR else (made, 0)


def _text(library: Any, minor: int) -> str:
    more, output = c_uint32(), _Buffer()
    oid = _oid(_KERBEROS)
    library.gss_display_status.argtypes = (
        POINTER(c_uint32), c_uint32, ctypes.c_int, POINTER(_Oid), POINTER(c_uint32), POINTER(_Buffer),
    )  # fmt: skip
    library.gss_display_status(c_uint32(), minor, _MECHANISM_CODE, oid, more, output)
    text = ctypes.string_at(output.value, output.length).decode(errors="replace") if output.value else ""
    library.gss_release_buffer(byref(c_uint32()), byref(output))
    return text


def _oid(elements: bytes) -> _Oid:
    return _Oid(len(elements), elements)


def _refuse(minor: int, why: str, service: str) -> NoReturn:
    where = {"service": service, "machine": platform.node()}
    if minor == _EXPIRED:
        raise StoreUnavailable("the Kerberos ticket for HDFS has expired", why=why, hint=_RENEW, **where)
    if minor == _NO_KDC:
        hint = "check the network and the KDC in /etc/krb5.conf, then run again"
        raise StoreUnavailable("the Kerberos server does not answer", why=why, hint=hint, **where)
    if minor == _UNKNOWN_SERVER:
        hint = (
            "set staging.hdfs.webhdfs to the host name in the principal of the name node's web server (HTTP/HOST@REALM)"
        )
        raise UsageError("Kerberos does not know the web server of HDFS", why=why, hint=hint, **where)
    raise UsageError("there is no Kerberos ticket for HDFS", why=why, hint=_RENEW + _ON_EXECUTORS, **where)
