"""PAC learning over finite worlds: exact, and sampled where tables would be too large."""
