"""`tradewind doctor`: what a folder of DAG files or a requirements file needs to work with Tradewind. `source_facts.py`
reads the text of a file, `old_names.py` maps names of older releases to their present names, `file_report.py` joins both with
the result of loading the file, `rewrite.py` computes the changed text. All of them are pure: the parser's child processes load
the files, and only the command writes files.
"""
