"""The smallest useful DAG: three tasks, one after the other, which pass a value on.

greet ─▶ shout ─▶ say

tradewind dags trigger hello_chain
tradewind tasks logs hello_chain say
"""

from __future__ import annotations

from datetime import datetime

from tradewind import dag, task


# A task is a function. Its return value is stored (as an "XCom") for the downstream tasks.
@task
def greet(name: str) -> str:
    return f"hello, {name}"


@task
def shout(text: str) -> str:
    return text.upper() + "!"


# The output of a task goes to its log.
@task
def say(text: str) -> None:
    print(text)


# The function below @dag defines the dependencies: if you pass the result of one task to another, the second waits for the first.
# No task runs here; `greet("world")` only stands for the future return value of greet.
@dag(schedule=None, start_date=datetime(2026, 1, 1), tags=["example"])
def hello_chain():
    say(shout(greet("world")))


hello_chain()
