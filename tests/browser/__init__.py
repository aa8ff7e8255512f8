"""The web page in a real browser, against a real server."""
