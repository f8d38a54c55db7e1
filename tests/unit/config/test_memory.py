from pathlib import Path

from ottla.config.memory import memory_bytes


def test_a_container_has_what_it_may_use(tmp_path: Path) -> None:
    machine = memory_bytes([])
    limit = tmp_path / "memory.max"
    assert machine > 1 << 28
    assert memory_bytes([limit]) == machine, "there is no such file"
    limit.write_text("max\n")
    assert memory_bytes([limit]) == machine
    limit.write_text(f"{1 << 27}\n")
    assert memory_bytes([tmp_path / "none", limit]) == 1 << 27
    limit.write_text(f"{1 << 62}\n")  # the first version's word for no limit is a large number
    assert memory_bytes([limit]) == machine
