"""The commands: one file per command group; large groups have more files named `<group>_<subject>.py`."""
