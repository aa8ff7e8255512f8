"""The simulation: the real scheduler, store and worker host in one thread under one virtual clock, with faults drawn from a seed.

`tradewind.testing.simulate` is its public function; docs/explanation/simulation.md describes the design. The modules, from the
bottom up:

    timeline         virtual time, processes that crash and pause, clocks that run wrong
    network          connections between processes that lose, repeat and delay messages
    shadow           a copy of the committed rows for the checks
    stores           the store with faults; it reports every commit to the shadow
    host             the real worker host, with simulated processes
    client           a client that sends commands to the scheduler
    workload         DAGs drawn from a seed
    callbacks        callbacks: which DAGs have some, and the processes that call them
    deadlines        deadlines and SLAs, and their checks
    triggers         waits and triggers
    faults           which faults a seed has, and how often
    user_actions     commands of users at bad moments
    checks           invariants that must hold after every commit
    wait_checks      invariants of deferred task instances
    callback_checks  invariants of callbacks
    command_checks   invariants of commands
    assets           assets: which DAGs update them and wait for them, and the checks of asset events
    why_checks       compares the answers of `why` with the committed rows
    world            one simulation from its start to its end
    simulate         the public function
"""
