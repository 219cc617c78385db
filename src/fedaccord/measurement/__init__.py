"""From pilot trainings and label histograms to a game."""
