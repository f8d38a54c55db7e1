"""What Spark starts as the daemon of its Python workers: `spark.python.daemon.module=ottla.spark.workers.daemon`.

Spark starts one for each environment that workers get. Where there is a nursery, this process hands its standard files
over to it and only waits: the daemon is a fork of the nursery, in no time. Else it is the daemon. The processes that
serve a stream come here as well (`starting.py` has the Python that leads them here).
"""

import os
import sys

from ottla.spark.workers.words import PLACE_VARIABLE, ask, connected, is_of_a_stream, wait_for_end


def main() -> int:
    place = os.environ.get(PLACE_VARIABLE)
    connection = None if place is None else connected(place)
    if connection is None:
        from ottla.spark.workers.forking import prepare  # noqa: PLC0415 - a second that a fork saves

        prepare()()
        return 0
    if not is_of_a_stream(sys.argv):
        os.setpgid(0, 0)  # as the daemon does: Ctrl-C is for the driver
    ask(connection)
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1):  # who reads them, or waits for their end, deals with the daemon alone
        os.dup2(nothing, file)
    return wait_for_end(connection)


if __name__ == "__main__":
    sys.exit(main())
