"""A small world in one thread: the real scheduler, store and worker host under one virtual clock, and everything that goes wrong.

`tradewind.testing.simulate` is its door; docs/explanation/simulation.md tells how it works. From the bottom up:

    clockwork   virtual time, processes that crash and pause, clocks that go wrong
    network     links between processes that lose, repeat and delay messages
    shadow      what is committed, as the checkers know it
    stores      both stores, with faults, telling the shadow of every commit
    host        the real worker host, with processes that only exist in virtual time
    workload    DAGs drawn from a seed
    calling     callbacks: which DAGs have some, and the processes that call them
    faults      which faults a seed has, and how often
    people      commands at bad moments
    checks      what must hold after every commit
    posts       what must hold of callbacks
    assets      assets: which DAGs update some and wait for them, and what must hold of their events
    why_checks  what `why` says at quiet moments, judged by the rows
    life        all of it together, from the first moment to the last
"""
