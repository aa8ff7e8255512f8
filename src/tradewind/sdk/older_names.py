"""Older names of arguments of provider packages that mean the same in all operators and hooks."""

from __future__ import annotations

_GOOGLE = ("gcp_conn_id", "google_cloud_conn_id")

IN_DEFAULT_ARGS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("bigquery_conn_id", "google_cloud_storage_conn_id", "google_cloud_conn_id", "gcs_conn_id", "datastore_conn_id"),
        _GOOGLE,
    ),
    "dest_gcs_conn_id": _GOOGLE,
    "s3_conn_id": ("aws_conn_id",),
    "source_s3_conn_id": ("source_aws_conn_id",),
    "dest_s3_conn_id": ("dest_aws_conn_id",),
    "node_selectors": ("node_selector",),
    "project": ("project_id",),
}
"""Older name → present names, for names that have one meaning in all operators. They apply in `default_args` too."""
