"""Airflow's provider packages: how they are installed without Airflow, and what the installed ones offer.

`stand_in.py` builds the wheel that satisfies their requirement `apache-airflow`; `versions.py`, `requirements.py` and `extras.py`
decide which one; `environment.py` looks at the environment for a genuine Airflow. `installed.py` reads what each package says of
itself, and `offers.py` answers from it: the hook of a connection type, task decorators, extra links, default settings.
"""
