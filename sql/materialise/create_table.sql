-- Creates a warehouse table: the columns of the source in their order, then the columns of the loader.
CREATE TABLE IF NOT EXISTS {table} (
  {columns}
)
USING iceberg
TBLPROPERTIES (
  {properties}
)
