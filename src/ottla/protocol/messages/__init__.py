"""Every message of the protocol, one module per API. Generated."""
