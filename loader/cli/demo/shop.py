"""The demo's shop on a real server: its tables, its rows, and a writer that keeps changing them."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from string import Template
from typing import Any

from pymysql.connections import Connection

from loader.resources import sql
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected

_SHARES = {
    "customers": 0.20,
    "products": 0.025,
    "orders": 0.30,
    "order_items": 0.40,
    "inventory": 0.025,
    "reviews": 0.05,
}
TABLES = tuple(f"shop.{name}" for name in sorted(_SHARES))
_PAUSE_SECONDS = 0.005  # so that the writer does not use a whole core of a small machine


def create_shop(address: ServerAddress, rows: int) -> None:
    """Create the shop with about `rows` rows in all tables, at most about 200,000."""
    counts = {name: max(1, min(100_000, int(rows * share))) for name, share in _SHARES.items()}
    with connected(address) as connection, connection.cursor() as cursor:
        for statement in sql("demo/shop").split(";\n"):
            cursor.execute(statement)
        for statement in Template(sql("demo/fill")).substitute(counts).split(";\n"):
            cursor.execute(statement)


class Writer:
    """Changes the shop until it is stopped: inserts, updates, key changes, deletes, rollbacks. Seeded."""

    def __init__(self, address: ServerAddress, seed: int = 1) -> None:
        self._address = address
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="writer", daemon=True)
        self._failure: BaseException | None = None
        self.transactions = 0

    def start(self) -> Writer:
        """Start to write."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Finish the current transaction and stop. Raises the exception of the writer, if it failed."""
        self._stop.set()
        self._thread.join()
        if self._failure:
            raise self._failure

    def _work(self) -> None:
        try:
            with connected(self._address) as connection:
                connection.autocommit(False)
                while not self._stop.is_set():
                    self._transaction(connection)
                    self.transactions += 1
                    time.sleep(_PAUSE_SECONDS)
        except BaseException as error:  # raised in the thread that stops the writer
            self._failure = error

    def _transaction(self, connection: Connection[Any]) -> None:
        steps: list[Callable[[Any], None]] = [
            self._order, self._order, self._pay, self._pay, self._customer, self._move_item, self._swap_items,
            self._review, self._forget, self._count, self._replace_product,
        ]  # fmt: skip
        with connection.cursor() as cursor:
            for step in self._random.sample(steps, self._random.randint(1, 3)):
                step(cursor)
        if self._random.random() < 0.1:
            connection.rollback()
        else:
            connection.commit()

    def _text(self) -> str | None:
        choices = [
            None,
            "",
            'say "hi"',
            "back\\slash\\",
            "two\nlines\r\n",
            "\\N",
            "NULL",
            "naïve 😀 漢字",
            "tab\t,comma",
        ]
        return self._random.choice(choices)

    def _order(self, cursor: Any) -> None:
        number = self._random.randint(1, 1000)
        cursor.execute(
            "INSERT INTO shop.orders (customer_id, status, total, placed_at, updated_at, remark)"
            " VALUES (%s, 'new', %s, NOW(6), NOW(3), %s)",
            (number, number / 8, self._text()),
        )
        order = cursor.lastrowid
        lines = [(order, line, f"SKU{line}", line, "1.2345") for line in range(1, self._random.randint(2, 6))]
        cursor.executemany("INSERT INTO shop.order_items VALUES (%s, %s, %s, %s, %s)", lines)

    def _pay(self, cursor: Any) -> None:
        first = self._random.randint(1, 20_000)
        cursor.execute(
            "UPDATE shop.orders SET status = %s, total = total + 1, updated_at = NOW(3), remark = %s"
            " WHERE id BETWEEN %s AND %s",
            (self._random.choice(["paid", "sent", "back"]), self._text(), first, first + 4),
        )

    def _customer(self, cursor: Any) -> None:
        cursor.execute(
            "UPDATE shop.customers SET note = %s, tier = %s, balance = balance - 0.01, seen_at = NOW(3) WHERE id = %s",
            (self._text(), self._random.choice([None, "free", "plus"]), self._random.randint(1, 5000)),
        )
        cursor.execute(
            "INSERT INTO shop.customers (email, name, created_at) VALUES (%s, 'Zoë', NOW(6))", ("new@example.org",)
        )

    def _move_item(self, cursor: Any) -> None:
        order = self._random.randint(1, 20_000)
        cursor.execute("UPDATE shop.order_items SET line = line + 100 WHERE order_id = %s AND line < 100", (order,))

    def _swap_items(self, cursor: Any) -> None:
        """Swap the keys of two rows in one transaction."""
        order = self._random.randint(1, 20_000)
        for old, new in ((1, 60001), (2, 1), (60001, 2)):
            cursor.execute(
                "UPDATE IGNORE shop.order_items SET line = %s WHERE order_id = %s AND line = %s", (new, order, old)
            )

    def _review(self, cursor: Any) -> None:
        key = (self._random.randint(1, 100), f"SKU{self._random.randint(1, 50)}")
        cursor.execute("DELETE FROM shop.reviews WHERE customer_id = %s AND sku = %s", key)
        cursor.execute(
            "INSERT INTO shop.reviews VALUES (%s, %s, 5, %s, %s)", (*key, self._text(), '{"ok": [1, 2.5, "x"]}')
        )

    def _forget(self, cursor: Any) -> None:
        order = self._random.randint(1, 40_000)
        cursor.execute("DELETE FROM shop.order_items WHERE order_id = %s", (order,))
        cursor.execute("DELETE FROM shop.orders WHERE id = %s", (order,))

    def _count(self, cursor: Any) -> None:
        cursor.execute(
            "UPDATE shop.inventory SET on_hand = on_hand - 1, shift = '-01:30:00', flags = flags ^ 1 WHERE sku = %s",
            (f"SKU{self._random.randint(1, 5000)}",),
        )

    def _replace_product(self, cursor: Any) -> None:
        cursor.execute(
            "REPLACE INTO shop.products (sku, title, price, weight, attributes) VALUES (%s, %s, 0.00000001, 1e-7, %s)",
            (f"SKU{self._random.randint(1, 200)}", self._text() or "x", '{"a": 1.5, "b": ["\\u00e9", null]}'),
        )
