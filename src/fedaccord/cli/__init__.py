"""The command line: arguments and printing."""

from __future__ import annotations

# Importing a command's module adds the command to the app.
from fedaccord.cli import audit as audit
from fedaccord.cli import catalog as catalog
from fedaccord.cli import check as check
from fedaccord.cli import coalitions as coalitions
from fedaccord.cli import explore as explore
from fedaccord.cli import flower as flower
from fedaccord.cli import frontier as frontier
from fedaccord.cli import merge as merge
from fedaccord.cli import pilots as pilots
from fedaccord.cli import plan as plan
from fedaccord.cli import reproduce as reproduce
from fedaccord.cli import share as share
from fedaccord.cli import solve as solve
from fedaccord.cli import template as template
from fedaccord.cli import train as train
from fedaccord.cli.app import app as app
from fedaccord.cli.app import main as main
