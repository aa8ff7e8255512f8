"""The conditions under which a task instance may run or a run ends, one per module.

Each module has a function that decides from plain values, and where needed a `sentence` that says the same to a person. The
scheduler and `tradewind why` use the same functions, so that an explanation cannot differ from what the scheduler does.
"""
