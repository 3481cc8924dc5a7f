"""Real MySQL and MariaDB servers without Docker and without installing anything.

    with start_server("mysql", data_dir=folder) as server:
        pymysql.connect(host=server.host, port=server.port, user=server.user)

The programs are fetched once into a cache folder (`fetch`), and each server gets a data folder of its own. Needs
nothing but the standard library, so that it also works before the project's environment exists, and from the wheel.
"""

from .errors import ServerError
from .options import Options
from .programs import Kind, Programs
from .server import Server
from .start import attach, start_server
from .ways import NEW_MARIADB, fetch

__all__ = [
    "NEW_MARIADB",
    "Kind",
    "Options",
    "Programs",
    "Server",
    "ServerError",
    "attach",
    "fetch",
    "start_server",
]
