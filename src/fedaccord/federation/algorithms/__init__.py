"""The federated algorithms.

To add one, write a subclass of `base.Algorithm` in a module of its own and name it here.
"""

# By kind: the name that people read, and the class, as `pkgutil.resolve_name` finds it.
ALGORITHMS = {
    "fedavg": ("FedAvg", f"{__name__}.base:FedAvg"),
    "mw-fed": ("MW-FED", f"{__name__}.mw_fed:MwFed"),
    "solo": ("Solo", f"{__name__}.base:Solo"),
    "pledged": ("PLEDGED", f"{__name__}.pledged:Pledged"),
    "earned": ("EARNED", f"{__name__}.earned:Earned"),
    "release": ("RELEASE", f"{__name__}.release:Release"),
    "hold-back": ("HOLD-BACK", f"{__name__}.hold_back:HoldBack"),
    "afl": ("AFL", f"{__name__}.afl:Afl"),
    "q-ffl": ("q-FFL", f"{__name__}.q_ffl:QFfl"),
    "fedprox": ("FedProx", f"{__name__}.fed_prox:FedProx"),
    "ditto": ("Ditto", f"{__name__}.ditto:Ditto"),
    "maxfl": ("MaxFL", f"{__name__}.max_fl:MaxFl"),
    "on-demand": ("ON-DEMAND", f"{__name__}.on_demand:OnDemand"),
    "fedce": ("FedCE", f"{__name__}.fed_ce:FedCe"),
    "mw-relief": ("MW-RELIEF", f"{__name__}.mw_relief:RelievedMwFed"),
}
