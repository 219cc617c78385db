"""Who should federate with whom: partitions of the agents that no group would leave."""
