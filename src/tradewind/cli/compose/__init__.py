"""The composition root: makes the configs of all parts from the settings, and connects the parts.

Only the command line reads settings. Heavy modules are imported inside the function that starts their process, so that each process
loads only its own parts.
"""
