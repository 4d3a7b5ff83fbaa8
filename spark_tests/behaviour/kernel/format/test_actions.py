"""Single actions as values."""

from __future__ import annotations

import pyarrow as pa

from delta_ds.kernel.format.actions import vector_id
from delta_ds.kernel.log.file_actions import deletion_vector_type, vector_ids

ON_DISK = {"storageType": "u", "pathOrInlineDv": ")U5k>1H?2ZURw+xNho[P", "offset": 1, "sizeInBytes": 44}
AT_THE_START = {"storageType": "p", "pathOrInlineDv": "file:/t/a.bin", "offset": 0, "sizeInBytes": 44}
INLINE = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}


def test_unique_id_of_a_deletion_vector_holds_the_offset_only_if_there_is_one() -> None:
    expected = ["u)U5k>1H?2ZURw+xNho[P@1", "pfile:/t/a.bin@0", "i" + INLINE["pathOrInlineDv"], None]
    vectors = [ON_DISK, AT_THE_START, INLINE, None]
    assert [vector_id(vector) for vector in vectors] == expected
    column = pa.chunked_array([pa.array(vectors, deletion_vector_type())])
    assert vector_ids(column).to_pylist() == expected
