"""Transactions that operators skip."""
