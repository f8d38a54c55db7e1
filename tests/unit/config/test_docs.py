"""docs/settings.md says what the tables say."""

import subprocess
import sys
from pathlib import Path

from ottla.config.broker import BROKER_SETTINGS
from ottla.config.topic import TOPIC_SETTINGS

ROOT = Path(__file__).parents[3]


def test_the_page_is_current() -> None:
    done = subprocess.run(
        [sys.executable, "tools/generate_settings_docs.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_setting_has_a_sentence_and_is_on_the_page() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for declared in (*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values()):
        assert declared.doc.endswith((".", ")")), declared.name
        assert f"| `{declared.name}` |" in page
