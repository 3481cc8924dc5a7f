-- A table of the warehouse: the source's columns in their order, then the loader's own.
CREATE TABLE IF NOT EXISTS {table} (
  {columns}
)
USING iceberg
TBLPROPERTIES (
  {properties}
)
