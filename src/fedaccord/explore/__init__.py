"""The consortium's meeting, live: a local web app that asks "and if we gave only 500?"."""
