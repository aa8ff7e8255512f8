"""The smallest useful DAG: three tasks, one after the other, and a value that travels along.

greet ─▶ shout ─▶ say

tradewind dags trigger hello_chain
tradewind tasks logs hello_chain say
"""

from __future__ import annotations

from datetime import datetime

from tradewind import dag, task


# A task is a function. What it returns is kept (as an "XCom") for the tasks after it.
@task
def greet(name: str) -> str:
    return f"hello, {name}"


@task
def shout(text: str) -> str:
    return text.upper() + "!"


# What a task prints goes to its log.
@task
def say(text: str) -> None:
    print(text)


# The function under @dag draws the arrows: handing the result of one task to another makes the second wait for the first.
# Nothing runs here; `greet("world")` is only a promise of what greet will return.
@dag(schedule=None, start_date=datetime(2026, 1, 1), tags=["example"])
def hello_chain():
    say(shout(greet("world")))


hello_chain()
