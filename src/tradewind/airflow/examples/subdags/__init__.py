"""Sub-DAGs of the examples."""
