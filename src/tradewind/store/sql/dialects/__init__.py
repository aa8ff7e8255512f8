"""One module for each database that can hold the store. `store.factory` imports the one that the URL names."""
