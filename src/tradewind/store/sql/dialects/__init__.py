"""One module for each database that can hold the store. Import the one that is needed; `store.factory` chooses by URL."""
