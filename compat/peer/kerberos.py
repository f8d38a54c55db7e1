"""A Kerberos realm for a test: MIT's own KDC with a database in a folder, on loopback."""

import contextlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from compat.peer.kafka import free_port

from ottla.testing.child import guard
from ottla.testing.waiting import wait_until

REALM = "OTTLA.TEST"
PACKAGES = "krb5-kdc krb5-admin-server krb5-user"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"


def missing() -> str | None:
    """Why there can be no realm here, and what to install; None if there can be one."""
    absent = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
    if absent:
        return f"{', '.join(absent)} not installed: MIT's KDC is needed (Debian: apt install {PACKAGES})"
    if importlib.util.find_spec("gssapi") is None:
        return "gssapi is not installed (pip install 'ottla[gssapi]', with Debian's libkrb5-dev)"
    return None


class Realm:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.config = folder / "krb5.conf"
        port = free_port()
        self.environment = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder / 'tickets'}",
            "KRB5RCACHENAME": f"dfl:{folder / 'replays'}",
            "PATH": _PATH,
        }
        self.config.write_text(
            f"[libdefaults]\ndefault_realm = {REALM}\nrdns = false\ndns_canonicalize_hostname = false\n"
            "dns_lookup_kdc = false\ndns_lookup_realm = false\nudp_preference_limit = 1\n"
            f"[realms]\n{REALM} = {{\n kdc = 127.0.0.1:{port}\n}}\n[domain_realm]\nlocalhost = {REALM}\n"
        )
        (folder / "kdc.conf").write_text(
            f"[kdcdefaults]\nkdc_listen = 127.0.0.1:{port}\nkdc_tcp_listen = 127.0.0.1:{port}\n"
            f"[realms]\n{REALM} = {{\n database_name = {folder / 'principal'}\n key_stash_file = {folder / 'stash'}\n"
            f" acl_file = {folder / 'kadm5.acl'}\n}}\n[logging]\nkdc = FILE:{folder / 'kdc.log'}\n"
        )

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def keytab(self, principal: str) -> Path:
        """A new principal, and its key in a file."""
        path = self._folder / f"{principal.replace('/', '-')}.keytab"
        self.run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self.run("kadmin.local", "-q", f"ktadd -k {path} {principal}")
        return path

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "a throw-away password")
        with (self._folder / "out.log").open("wb") as log:
            process = subprocess.Popen(
                ["krb5kdc", "-n"],
                env={**os.environ, **self.environment},
                executable=shutil.which("krb5kdc", path=_PATH),
                stdout=log,
                stderr=log,
            )
        watcher = guard(process.pid)
        try:
            log_file = self._folder / "kdc.log"
            wait_until(
                lambda: log_file.exists() and "commencing operation" in log_file.read_text(), "the KDC runs", seconds=30
            )
            yield
        finally:
            watcher.kill()
            watcher.communicate()
            process.terminate()
            process.wait(30)
