"""One file per resource. Each route's function is marked with its policy and answers with a shape of the store."""
