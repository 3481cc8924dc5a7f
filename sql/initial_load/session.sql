-- Text comes in the character set of its column: the server would make `?` of what it cannot convert.
SET SESSION character_set_results = NULL;
