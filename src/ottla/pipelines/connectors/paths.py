"""Where a path of a pipeline file is on this machine."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from ottla.pipelines.connectors.options import refers


def local_path(text: str, base_dir: Path) -> Path:
    """Relative to the pipeline's file; `~` and `file://` are understood."""
    if text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    return (base_dir / Path(text).expanduser()).absolute()


def spark_path(path: Path) -> str:
    """As Spark wants it: with a scheme, and, unlike a URL, with nothing quoted."""
    return f"file://{path}"


def path_problems(option: str, text: str) -> list[str]:
    if refers(text):
        return []
    if not text:
        return [f"{option}: name a folder or a file"]
    scheme = urlsplit(text).scheme
    if scheme in {"s3", "s3a"}:
        return [f"{option}: for object storage use `s3: {text}` instead"]
    if len(scheme) > 1 and scheme != "file":
        return [f"{option}: `{scheme}:` is not served; use a path that every Spark worker sees, or `s3:`"]
    return []
