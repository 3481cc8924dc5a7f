"""A Kerberos realm on this machine, for the tests: the KDC of a Debian package, nothing installed.

with run_kerberos(folder) as realm:
    keytab = realm.keytab("loader")
    environment = realm.environment | {"KRB5CCNAME": str(realm.ticket(keytab, "loader"))}
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.debian import program
from infra.servers.errors import ServerError, tail
from infra.servers.process import HOST, free_port, wait_until

REALM = "LOADER.TEST"
_PACKAGE = "krb5-admin-server"  # depends on the KDC and on the programs of clients
_START_SECONDS = 30
# Host names are taken as they are written: no server of names knows those of the tests.
_CLIENT = """[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
{realm} = {{
  kdc = {host}:{port}
}}
"""
_SERVER = """[kdcdefaults]
kdc_ports = ""
kdc_tcp_ports = ""
[realms]
{realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
  kdc_listen = ""
  kdc_tcp_listen = {host}:{port}
}}
[dbmodules]
  db_module_dir = {modules}
"""


class Kerberos:
    """A realm.

    Attributes:
        configuration: krb5.conf of its clients.
    """

    def __init__(self, folder: Path) -> None:
        self.configuration = folder / "krb5.conf"
        self._folder = folder
        self._port = free_port()
        self._log = folder / "kdc.log"
        self._kdc: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which programs other than Java use this realm."""
        return {"KRB5_CONFIG": str(self.configuration)}

    @property
    def java_option(self) -> str:
        """Return the option with which Java uses this realm."""
        return f"-Djava.security.krb5.conf={self.configuration}"

    def create(self) -> None:
        """Create the realm.

        Raises:
            ServerError: the package cannot be fetched, or a program failed.
        """
        kdc = Path(program(_PACKAGE, "krb5kdc")[-1])
        modules = next(kdc.parents[1].glob("lib/*/krb5/plugins/kdb"))
        place = {"realm": REALM, "host": HOST, "port": self._port, "folder": self._folder, "modules": modules}
        self.configuration.write_text(_CLIENT.format(**place))
        (self._folder / "kdc.conf").write_text(_SERVER.format(**place))
        self._run("kdb5_util", "create", "-s", "-P", "master", "-r", REALM)

    def start(self) -> None:
        """Start the KDC, and wait until it answers.

        Raises:
            ServerError: it did not come up.
        """
        with self._log.open("ab") as output:
            argv = [*program(_PACKAGE, "krb5kdc"), "-n"]
            kdc = subprocess.Popen(argv, env=self._variables(), stdout=output, stderr=output, start_new_session=True)
        self._kdc = kdc
        if not wait_until(lambda: kdc.poll() is not None or self._answers(), _START_SECONDS) or kdc.poll() is not None:
            raise ServerError(f"the KDC did not come up:\n{tail(self._log.read_text())}")

    def stop(self) -> None:
        """End the KDC."""
        if self._kdc:
            self._kdc.terminate()
            self._kdc.wait()
            self._kdc = None

    def keytab(self, *principals: str) -> Path:
        """Create principals, and return a file with their keys."""
        file = self._folder / f"{_file_name(principals[0])}.keytab"
        for principal in principals:
            self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
            self._run("kadmin.local", "-q", f"ktadd -k {file} {principal}")
        return file

    def ticket(self, keytab: Path, principal: str, lifetime: str = "1h") -> Path:
        """Log in with a key, and return the file of the ticket."""
        cache = self._folder / f"ticket-{_file_name(principal)}-{lifetime}"
        self._run("kinit", "-k", "-t", str(keytab), "-c", str(cache), "-l", lifetime, principal)
        return cache

    def _run(self, name: str, *arguments: str) -> None:
        argv = [*program(_PACKAGE, name), *arguments]
        done = subprocess.run(argv, check=False, capture_output=True, text=True, env=self._variables())
        if done.returncode:
            raise ServerError(f"{name} failed:\n{tail(done.stdout + done.stderr)}")

    def _variables(self) -> dict[str, str]:
        return {**os.environ, **self.environment, "KRB5_KDC_PROFILE": str(self._folder / "kdc.conf")}

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self._port)) == 0


def _file_name(principal: str) -> str:
    return principal.replace("/", "-")


@contextmanager
def run_kerberos(folder: Path) -> Iterator[Kerberos]:
    """A realm whose files are in an empty folder, until the end of the block.

    Raises:
        ServerError: it did not come up.
    """
    realm = Kerberos(folder)
    realm.create()
    try:
        realm.start()
        yield realm
    finally:
        realm.stop()
