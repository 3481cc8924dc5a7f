"""CREATE TRIGGER statements: the table that gets a BEFORE UPDATE trigger."""

from __future__ import annotations

import pytest

from loader.model.table import TableName
from loader.schema.lexer import UnreadableError
from loader.schema.triggers import read_update_trigger

READ = {
    "CREATE TRIGGER t BEFORE UPDATE ON a FOR EACH ROW SET NEW.n = 1": "shop.a",
    "create trigger x.t before update on `x`.`a` for each row begin end": "x.a",
    "CREATE OR REPLACE DEFINER=`root`@`localhost` TRIGGER IF NOT EXISTS t BEFORE UPDATE ON x.a FOR EACH ROW BEGIN END": "x.a",
    "CREATE DEFINER = root@'%' TRIGGER t BEFORE UPDATE ON a FOR EACH ROW PRECEDES u SET NEW.n = 1": "shop.a",
    "CREATE DEFINER=CURRENT_USER() TRIGGER t BEFORE UPDATE ON a FOR EACH ROW SET NEW.n = 1": "shop.a",
    "SET STATEMENT max_statement_time=1 FOR CREATE TRIGGER t BEFORE UPDATE ON a FOR EACH ROW SET NEW.n = 1": "shop.a",
    "CREATE TRIGGER t AFTER UPDATE ON a FOR EACH ROW SET @n = 1": "",
    "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET NEW.n = 1": "",
    "CREATE DEFINER=a@b PROCEDURE p() DROP TRIGGER t": "",
    "DROP TRIGGER t": "",
    "CREATE TABLE a (`trigger` INT)": "",
    "INSERT INTO a VALUES ('CREATE TRIGGER t BEFORE UPDATE ON a')": "",
}


@pytest.mark.parametrize(("statement", "table"), READ.items())
def test_the_table_of_a_trigger(statement: str, table: str) -> None:
    assert str(read_update_trigger(statement, "shop", 0, True) or "") == table


def test_a_trigger_that_cannot_be_read() -> None:
    with pytest.raises(UnreadableError):
        read_update_trigger("CREATE TRIGGER t BEFORE UPDATE a", "shop", 0, True)


def test_names_are_folded_as_the_server_does() -> None:
    statement = "CREATE TRIGGER T BEFORE UPDATE ON A FOR EACH ROW SET NEW.n = 1"
    assert read_update_trigger(statement, "Shop", 0, True, folds=True) == TableName("shop", "a")
