"""TLS for brokers and clients alike: key and trust stores, cipher names, names of certificates, contexts."""
