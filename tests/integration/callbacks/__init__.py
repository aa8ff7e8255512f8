"""Callbacks, deadlines and mails in real processes."""
