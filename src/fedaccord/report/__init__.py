"""Results in, tables and pages out; nothing is computed here."""
