"""Changes of every kind on every table of the shop, different in each round."""

from __future__ import annotations


def changes(round_number: int) -> list[str]:
    """Statements, each its own transaction: inserts, updates, key changes, a swap, deletes, a rollback."""
    n = round_number
    order = 1 + n * 7 % 500
    return [
        f"INSERT INTO shop.customers (email, name, tier, balance, note, created_at) VALUES"
        f" ('r{n}@example.org', 'Zoë', 'plus', -{n}.25, 'a\\\\b\\n\"c\" 😀', '2026-04-01 00:00:00.000{n:03d}')",
        f"UPDATE shop.customers SET balance = balance + {n}, note = NULL WHERE id % 50 = {n % 50}",
        f"UPDATE shop.order_items SET line = line + {100 * (n + 1)} WHERE order_id = {order}",
        f"DELETE FROM shop.orders WHERE id = {order + 1}",
        f"UPDATE shop.inventory SET on_hand = {n}, shift = '-{n}:00:01', flags = {n % 256} WHERE sku = 'SKU{n + 1}'",
        f"REPLACE INTO shop.products (sku, title, weight, ratio, attributes) VALUES"
        f" ('SKU{n + 1}', 'replaced {n}', {n} / 7, {n} / 3, '{{\"round\": {n}, \"list\": [1.5, null]}}')",
        f"DELETE FROM shop.reviews WHERE customer_id = {n + 1}",
        f"INSERT INTO shop.reviews VALUES ({100000 + n}, 'SKU1', 1, '', NULL)",
    ]
