"""A server with the S3 API in a process of its own, for runs that move more than a test should keep in its memory."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import urlopen

from pyarrow import fs

from ottla.pipelines.connectors.objects.store import S3Access
from ottla.testing.ports import free_ports
from ottla.testing.waiting import wait_until

USER, SECRET = "ann", "geheim"


@contextmanager
def s3_server(bucket: str) -> Iterator[S3Access]:
    """Runs while the block does, with an empty bucket."""
    (port,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{port}"
    main = "import sys; from moto.server import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", main, "-H", "127.0.0.1", "-p", str(port)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip

    def answers() -> bool:
        assert process.poll() is None, "the S3 server ended"
        try:
            with urlopen(endpoint, timeout=5):
                return True
        except URLError:
            return False

    try:
        wait_until(answers, "the S3 server answers", seconds=60)
        maker = fs.S3FileSystem(
            access_key=USER, secret_key=SECRET, endpoint_override=f"127.0.0.1:{port}", scheme="http",
            region="us-east-1", allow_bucket_creation=True,
        )  # fmt: skip
        maker.create_dir(bucket)
        yield S3Access(endpoint=endpoint, access_key=USER, secret_key=SECRET)
    finally:
        process.terminate()
        process.wait()
