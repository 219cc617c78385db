"""Solvers that answer claims, called with a game."""

from fedaccord.equilibria.result import Claim, Deadline


def of_games(solve, concept):
    """Let a solver take a game and options in place of a claim."""

    def run(game, *, select="cheapest", tolerance=1e-6, deadline=None, **options):
        claim = Claim(game, concept, tolerance, deadline or Deadline(60.0), select == "costliest")
        return solve(claim, **options)

    return run
