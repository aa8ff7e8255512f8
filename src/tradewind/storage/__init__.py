"""Where task logs and large XComs are stored. See `storage.port`."""
