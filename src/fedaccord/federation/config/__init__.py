"""A federation and its algorithms from a TOML file."""
