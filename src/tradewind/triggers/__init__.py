"""Triggers: small asynchronous waits. Many run in one process, for tasks that wait without a process of their own."""
