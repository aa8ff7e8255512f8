"""One rule, one file, one reason.

Each module speaks about one condition. Its decision function answers from plain values; its `sentence` says the same thing
to a person, so that what the scheduler does and what `why` explains cannot differ.
"""
