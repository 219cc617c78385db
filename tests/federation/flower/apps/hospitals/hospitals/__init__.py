"""An app for tests of deployments."""
