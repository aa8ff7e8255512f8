"""The store on SQL databases: statements that are the same for all databases, and the dialects."""
