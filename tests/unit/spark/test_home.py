"""The SPARK_HOME that keeps workers from importing PySpark out of a zip."""

import sys
from pathlib import Path

import pytest

from ottla.spark.home import home_without_zip


def test_a_home_with_everything_but_the_zip(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    home = home_without_zip("local[*]", {}, environment)
    assert home is not None
    assert (home / "bin" / "spark-submit").is_file()
    assert (home / "jars").is_dir()
    assert not (home / "python").exists()
    assert home_without_zip("local[2]", {}, environment) == home


@pytest.mark.parametrize(
    ("master", "conf", "environment"),
    [
        ("spark://host:7077", {}, {}),
        ("local-cluster[2,1,1024]", {}, {}),
        ("yarn", {}, {}),
        ("local[*]", {"spark.pyspark.python": "/another/python"}, {}),
        ("local[*]", {}, {"PYSPARK_PYTHON": "/another/python"}),
        ("local[*]", {}, {"SPARK_HOME": "/opt/spark"}),
    ],
)
def test_others_keep_their_own(master: str, conf: dict[str, str], environment: dict[str, str], tmp_path: Path) -> None:
    given = {"XDG_CACHE_HOME": str(tmp_path), "PYSPARK_PYTHON": sys.executable, **environment}
    assert home_without_zip(master, conf, given) is None


def test_every_name_of_this_python_is_this_python(tmp_path: Path) -> None:
    """A command's first line says `python3` where whoever started it has said `python`."""
    here = Path(sys.executable).parent
    names = [path for path in here.glob("python*") if path.resolve() == Path(sys.executable).resolve()]
    assert len(names) > 1
    for name in names:
        environment = {"XDG_CACHE_HOME": str(tmp_path), "PYSPARK_PYTHON": str(name)}
        assert home_without_zip("local[*]", {}, environment) is not None
    (tmp_path / "python").symlink_to(Path(sys.executable).resolve())
    elsewhere = {"XDG_CACHE_HOME": str(tmp_path), "PYSPARK_PYTHON": str(tmp_path / "python")}
    assert home_without_zip("local[*]", {}, elsewhere) is None
