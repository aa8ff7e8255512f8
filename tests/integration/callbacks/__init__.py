"""What is called after the fact, in real processes."""
