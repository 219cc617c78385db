"""python -m fedaccord."""

from fedaccord.cli import main

main()
