"""Where logs and large XComs lie: a local folder today."""
