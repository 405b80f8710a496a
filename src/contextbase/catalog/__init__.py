"""Apps, their layered configuration, knowledge bases and runtime manifests."""
