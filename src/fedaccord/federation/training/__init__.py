"""One run of training: the loop, its steps and its random numbers."""
