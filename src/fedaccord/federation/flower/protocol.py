"""Flower's own part of what server and clients say: its log, and the keys of its records."""

from __future__ import annotations

import logging

from fedaccord.federation.remote.protocol import drawn_points as drawn_points

# The logger that Flower's users see.
LOG = logging.getLogger("flwr")

METRICS = "metrics"
WHO = "who"
CLIENT = "client"
