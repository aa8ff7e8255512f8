"""Airflow's provider packages: how they are installed without Airflow, and what the installed ones offer.

`stand_in.py` builds the wheel that satisfies their requirement `apache-airflow`; `versions.py`, `requirements.py` and `extras.py`
decide which stand-in is built; `environment.py` checks whether the environment contains a genuine Airflow. `installed.py` reads
the description of each package, and `offers.py` answers questions from the descriptions: the hook of a connection type, task
decorators, extra links, default settings.
"""
