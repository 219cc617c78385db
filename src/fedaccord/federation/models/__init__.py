"""Networks, and the native block of the paper's network."""
