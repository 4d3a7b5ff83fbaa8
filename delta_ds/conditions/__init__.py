"""Every error condition as one record: its name, class, SQLSTATE, family, text and parameters.

A condition is what programs know an error by. Its text is changed here and nowhere else: code raises
`COLUMN_NOT_FOUND_IN_SCHEMA(table=..., column=...)`, and the table of `docs/errors.md` is made of the records. Each
module has the conditions of one subject, and loads with the code that raises them; `index.py` finds one by its name.
Texts that exist in one place only, of the condition that their class has anyway, stand where they are raised.

Names, states and families are those of delta-spark and Spark, where they have the condition.

Source: `delta-error-classes.json`, `error-conditions.json`, `DeltaErrors`.
"""
