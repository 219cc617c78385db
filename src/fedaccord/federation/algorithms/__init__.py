"""The federated algorithms.

To add one, write a subclass of `base.Algorithm` in a module of its own and name it here.
"""

# By kind: the name that people read, and the class, as `pkgutil.resolve_name` finds it.
ALGORITHMS = {
    "fedavg": ("FedAvg", f"{__name__}.base:FedAvg"),
    "mw-fed": ("MW-FED", f"{__name__}.mw_fed:MwFed"),
    "solo": ("Solo", f"{__name__}.base:Solo"),
    "pledged": ("PLEDGED", f"{__name__}.pledged:Pledged"),
    "release": ("RELEASE", f"{__name__}.release:Release"),
    "hold-back": ("HOLD-BACK", f"{__name__}.hold_back:HoldBack"),
    "mw-relief": ("MW-RELIEF", f"{__name__}.mw_relief:RelievedMwFed"),
}
