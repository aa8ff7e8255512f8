"""Bundles of DAG files: fetching them from git or an object store, and copying them to workers on other machines."""
