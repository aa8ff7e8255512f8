"""What descriptions of Airflow 1.8 to 2.2 say, row by row, and which of it is proven here.

`rows.tsv` holds one row per line: id, group, title, recommendation. A test that proves rows says so: `@pytest.mark.spec("S160")`.
`docs/reference/specification.md` names the rows that a better mechanism replaces, those that are missing,
and those that need other work first.
"""
