"""TLS of listeners: their stores and contexts, replaced at run time, and who the owner of a certificate is."""
