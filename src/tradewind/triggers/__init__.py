"""Triggers: small asynchronous waits that run beside many others, for tasks that wait without a process."""
