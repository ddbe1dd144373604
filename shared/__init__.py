"""Clubladder's product code: rule systems, ledger, store and use cases."""
