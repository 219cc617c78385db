"""Data that federations are made of."""
