"""`airflow.version`: the release of Airflow that provider packages and DAG files see.

It is the version of the installed stand-in (`tradewind providers install`), otherwise the release whose names Tradewind serves.
It has no local part `+tradewind`: DAG files and packages split the text at its dots and convert the parts to numbers.
"""

from tradewind.airflow.names import VERSION
from tradewind.provider_packages.environment import installed_version
from tradewind.provider_packages.versions import is_stand_in

_installed = installed_version()

__version__ = version = (_installed if _installed is not None and is_stand_in(_installed) else VERSION).partition("+")[0]

__all__ = ["version"]
