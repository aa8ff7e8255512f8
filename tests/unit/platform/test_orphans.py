"""A subreaper kills and reaps orphans; one that does not die does not block it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tradewind.platform import HAVE_LINUX

pytestmark = pytest.mark.skipif(not HAVE_LINUX, reason="needs prctl and /proc")

BEGIN = """
import ctypes, os, signal, subprocess, sys, time
from tradewind.platform import linux
linux.become_subreaper()
"""


def output_of(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", BEGIN + code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_orphans_and_their_children_are_killed_and_registered_ones_live() -> None:
    code = """
kept = subprocess.Popen(["sleep", "60"])
shell = subprocess.Popen(["bash", "-c", "sleep 60 & setsid sleep 60 & sleep 60"], stdout=subprocess.DEVNULL)
while len(linux.descendants(os.getpid())) < 5: time.sleep(0.01)
print(len(linux.reap_and_kill_orphans({kept.pid})), linux.descendants(os.getpid()) == [kept.pid])
kept.kill()
"""
    assert output_of(code) == ["4", "True"]


def test_a_killed_process_that_is_traced_is_not_waited_for() -> None:
    """The process of a stopped debugger is dead, but cannot be reaped before the debugger releases it."""
    code = """
linux.DYING_SECONDS = 0.3
read, write = os.pipe()
victim = subprocess.Popen(["sleep", "60"])
tracer = os.fork()
if tracer == 0:
    ctypes.CDLL(None, use_errno=True).ptrace(0x4206, victim.pid, 0, 0)  # PTRACE_SEIZE
    traced = "TracerPid:\\t0\\n" not in open(f"/proc/{victim.pid}/status").read()
    os.write(write, b"y" if traced else b"n")
    time.sleep(60)
    os._exit(0)
if os.read(read, 1) == b"n":
    print("skip")
    os.kill(tracer, 9)
    victim.kill()
    sys.exit()
began = time.monotonic()
first = linux.reap_and_kill_orphans({tracer})
again = linux.reap_and_kill_orphans({tracer})
print(first == [victim.pid], again == [], time.monotonic() - began < 20, linux.own_children() == [victim.pid, tracer])
os.kill(tracer, 9)
os.waitpid(tracer, 0)
while linux.own_children():
    linux.reap_and_kill_orphans(set())
    time.sleep(0.01)
print("reaped")
"""
    found = output_of(code)
    if found == ["skip"]:
        pytest.skip("tracing is not allowed here")
    assert found == ["True", "True", "True", "True", "reaped"]
