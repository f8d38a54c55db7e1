"""`ottla doctor --host`: what is wrong with a machine is found, and the way to mend it is named."""

import json
from pathlib import Path

import pytest

from ottla.cli.local.doctor_checks import State
from ottla.cli.local.doctor_host import NETWORK, check_host, mount_of
from ottla.cli.main import main

GOOD = {
    "proc/sys/vm/swappiness": "1",
    "proc/sys/vm/dirty_background_ratio": "5",
    "proc/sys/vm/dirty_ratio": "80",
    "proc/sys/fs/file-max": "9223372036854775807",
    "proc/meminfo": "MemTotal: 1000 kB\nSwapTotal: 500 kB\nDirty: 2048 kB\nWriteback: 0 kB\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "proc/self/mountinfo": "21 1 8:1 / / rw,noatime shared:1 - xfs /dev/sda1 rw\n",
    **{f"proc/sys/{each.name.replace('.', '/')}": "4096 8192 4194304" if each.field else "4096" for each in NETWORK},
    "proc/sys/net/core/wmem_max": str(4 << 20),
    "proc/sys/net/core/rmem_max": str(4 << 20),
    "proc/sys/net/core/wmem_default": "212992",
    "proc/sys/net/core/rmem_default": "212992",
}  # fmt: skip


def machine(root: Path, **changed: str | None) -> Path:
    for name, text in {**GOOD, **changed}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            path.write_text(text + "\n")
    return root


def found(root: Path) -> dict[str, str]:
    """Checks that are not well, with how to mend them."""
    return {
        finding.found: finding.mend or ""
        for finding in check_host(Path("/var/lib/ottla"), root)
        if finding.state in (State.WARN, State.FAIL) and "for a process" not in finding.found
    }


def test_a_machine_that_is_set_up_well(tmp_path: Path) -> None:
    assert found(machine(tmp_path)) == {}


@pytest.mark.parametrize(
    ("name", "text", "told", "mend"),
    [
        ("proc/sys/vm/swappiness", "60", "vm.swappiness is 60", "sysctl -w vm.swappiness=1"),
        ("proc/sys/vm/dirty_background_ratio", "40", "vm.dirty_background_ratio is 40", "vm.dirty_background_ratio=5"),
        ("proc/sys/vm/dirty_ratio", "10", "vm.dirty_ratio is 10 (2 MiB are dirty now", "vm.dirty_ratio=60"),
        ("proc/sys/fs/file-max", "5000", "fs.file-max is 5,000", "fs.file-max=1000000"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never", "huge pages: always", "madvise"),
        ("proc/self/mountinfo", "21 1 8:1 / / rw,noatime - nfs4 host:/x rw", "over a network", "of this machine"),
        ("proc/self/mountinfo", "21 1 8:1 / / rw,noatime - btrfs /dev/sda rw", "on btrfs", "XFS"),
        ("proc/self/mountinfo", "21 1 0:5 / /var/lib rw,noatime - tmpfs t rw", "gone after a restart", "disk"),
        ("proc/self/mountinfo", "21 1 8:1 / / rw - ext4 /dev/sda rw", "keeps access times", "remount,noatime /"),
        ("proc/sys/net/core/rmem_max", "212992", "net.core.rmem_max is 212,992", "net.core.rmem_max=2097152"),
        ("proc/sys/net/ipv4/tcp_wmem", "4096 1 9", "net.ipv4.tcp_wmem is 9", 'tcp_wmem="4096 1 2097152"'),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do(name: str, text: str, told: str, mend: str, tmp_path: Path) -> None:
    ((said, how),) = found(machine(tmp_path, **{name: text})).items()
    assert told in said
    assert mend in how


def test_what_a_container_does_not_show_is_no_fault(tmp_path: Path) -> None:
    findings = list(check_host(Path("/data"), tmp_path))
    assert {each.state for each in findings} <= {State.SKIPPED, State.OK, State.WARN}
    assert sum(each.state is State.SKIPPED for each in findings) >= 5


def test_the_innermost_mount_counts(tmp_path: Path) -> None:
    table = (
        "1 1 8:1 / / rw - ext4 a rw\n2 1 8:2 / /var/lib rw,noatime - xfs b rw\n3 1 8:3 / /var/library rw - btrfs c rw"
    )
    root = machine(tmp_path, **{"proc/self/mountinfo": table})
    mount = mount_of(Path("/var/lib/ottla"), root)
    assert mount is not None
    assert (mount.point, mount.kind) == ("/var/lib", "xfs")


def test_the_command_looks_at_this_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["doctor", "--host", "--json", "--data", str(tmp_path)])
    checks = json.loads(capsys.readouterr().out)["checks"]
    names = {each["check"] for each in checks}
    assert {"swapping", "dirty pages", "huge pages", "file system", "file descriptors", "network"} <= names
    assert "python" not in names
