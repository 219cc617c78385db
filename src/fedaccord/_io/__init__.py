"""Files in and out: one reader and one writer per format."""
