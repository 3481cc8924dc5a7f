"""The store on S3: `s3://bucket/prefix`.

Conditional writes: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
"""

from __future__ import annotations

import base64
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import SEEK_END
from typing import IO, Any

from loader.errors import StoreUnavailable, UsageError
from loader.s3 import S3Address, S3ObjectChanged, S3ObjectMissing, S3Unavailable, open_client, s3_errors
from loader.store.address import S3Options, split_address
from loader.store.base import PAGE_NAMES, ObjectInfo, ObjectNotFound, Page, require_key

PART_BYTES = 16 * 1024 * 1024
"""Larger objects are uploaded in parts of that size; see put."""

_PROBE = ".conditional-writes"  # an object that is never removed, so that each process asks only once
_WRITER = "writer"  # metadata of a created object: which create wrote it
_ENCRYPTION = {"": {}, "s3": {"ServerSideEncryption": "AES256"}, "kms": {"ServerSideEncryption": "aws:kms"}}
_proved: set[str] = set()  # roots whose server is known in this process to refuse a second create


def _checksum(data: bytes) -> str:
    """Return the checksum of a body for a header. Over TLS boto3 otherwise sends it after the body."""
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


class S3Remote:
    """Objects under a prefix of a bucket; see Remote."""

    def __init__(self, root: str) -> None:
        self.root = root
        address, options = split_address(root, S3Options)
        self._place = S3Address.parse(address)
        if self._place.key:
            require_key(self._place.key)
        # Only RemoteStore retries: two layers of retries would multiply.
        self._client = open_client(
            endpoint=options.endpoint,
            region=options.region,
            path_style=options.path_style,
            tls_ca=options.tls_ca,
            attempts=1,
        )
        self._paying = {"RequestPayer": "requester"} if options.requester_pays else {}
        key = {"SSEKMSKeyId": options.kms_key} if options.kms_key else {}
        self._writing = {**self._paying, **_ENCRYPTION[options.sse], **key}

    def creating(self, key: str, data: bytes) -> Callable[[], bool]:
        """See Remote: uses `If-None-Match: *`. The metadata of an existing object says which create wrote it.

        Raises:
            UsageError: the server ignores `If-None-Match`, so both of two creates would succeed.
        """
        writer = uuid.uuid4().hex
        tried = False

        def attempt() -> bool:
            nonlocal tried
            self._require_conditional_writes()
            # A server may refuse an object before it has read all of it. Over TLS the client then sees a broken
            # connection, and no reply.
            if tried and (found := self._writer(key)) is not None:
                return found == writer
            tried = True
            return self._created(key, data, writer) or self._known_writer(key) == writer

        return attempt

    def put(self, key: str, file: IO[bytes]) -> None:
        """See Remote: uploads a large object in parts, which become an object only when all are complete."""
        from boto3.s3.transfer import TransferConfig

        size = file.seek(0, SEEK_END)
        file.seek(0)
        place = self._place / key
        with self._errors(key):
            if size <= PART_BYTES:
                self._client.put_object(Bucket=place.bucket, Key=place.key, Body=file.read(), **self._writing)
                return
            # One part is in memory at a time. A failed upload is aborted, so that its parts do not stay and cost money.
            parts = TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, use_threads=False)
            self._client.upload_fileobj(file, place.bucket, place.key, ExtraArgs=self._writing, Config=parts)

    def get(self, key: str) -> bytes:
        """See Store."""
        place = self._place / key
        with self._errors(key):
            found = self._client.get_object(Bucket=place.bucket, Key=place.key, **self._paying)
            return bytes(found["Body"].read())

    def get_range(self, key: str, start: int, stop: int) -> bytes:
        """See Remote."""
        place = self._place / key
        wanted = {"Range": f"bytes={start}-{stop - 1}", **self._paying}
        try:
            with self._errors(key):
                found = self._client.get_object(Bucket=place.bucket, Key=place.key, **wanted)
                return bytes(found["Body"].read())
        except StoreUnavailable as error:
            if "InvalidRange" in error.why:  # the answer of S3 at the end of the object
                return b""
            raise

    def list(self, prefix: str) -> tuple[ObjectInfo, ...]:
        """See Store."""
        root = (self._place / "").key
        found = (entry for page in self._pages(prefix) for entry in page.get("Contents", ()))
        return tuple(
            ObjectInfo(entry["Key"].removeprefix(root), int(entry["Size"]), entry["LastModified"]) for entry in found
        )

    def folders(self, prefix: str) -> tuple[str, ...]:
        """See Store."""
        found = (entry for page in self._pages(prefix, Delimiter="/") for entry in page.get("CommonPrefixes", ()))
        return tuple(sorted(entry["Prefix"].rstrip("/").rpartition("/")[2] for entry in found))

    def folders_after(self, prefix: str, after: str) -> Page:
        """See Store."""
        place = self._place / prefix
        # `0` sorts directly after `/`, so this name is after all objects in the folder `after`.
        start = {"StartAfter": f"{place.key}{after}0"} if after else {}
        names: list[str] = []
        with self._errors(prefix):
            while True:
                found = self._client.list_objects_v2(
                    Bucket=place.bucket, Prefix=place.key, Delimiter="/", MaxKeys=PAGE_NAMES, **start, **self._paying
                )
                prefixes = (entry["Prefix"] for entry in found.get("CommonPrefixes", ()))
                names += (one.rstrip("/").rpartition("/")[2] for one in prefixes)
                if names or not found["IsTruncated"]:
                    return Page(tuple(sorted(names)), bool(found["IsTruncated"]))
                start = {"ContinuationToken": found["NextContinuationToken"]}

    def delete(self, key: str) -> None:
        """See Store."""
        place = self._place / key
        with self._errors(key):
            self._client.delete_object(Bucket=place.bucket, Key=place.key, **self._paying)

    def remove(self, prefix: str) -> None:
        """See Store."""
        for info in self.list(prefix):
            self.delete(info.key)

    def uri(self, key: str) -> str:
        """See Store: returns the name for Hadoop's S3A file system."""
        place = self._place / key
        return f"s3a://{place.bucket}/{place.key}"

    def _created(self, key: str, data: bytes, writer: str) -> bool:
        place = self._place / key
        with self._errors(key):
            try:
                with s3_errors(place):
                    self._client.put_object(
                        Bucket=place.bucket,
                        Key=place.key,
                        Body=data,
                        ChecksumCRC32=_checksum(data),
                        IfNoneMatch="*",
                        Metadata={_WRITER: writer},
                        **self._writing,
                    )
            except S3ObjectChanged:
                return False
        return True

    def _known_writer(self, key: str) -> str:
        found = self._writer(key)
        if found is None:
            raise StoreUnavailable("an object disappeared", hint="run again", key=self._place / key)
        return found

    def _writer(self, key: str) -> str | None:
        """Return which create wrote an object; None if there is no such object."""
        place = self._place / key
        try:
            with self._errors(key):
                found = self._client.head_object(Bucket=place.bucket, Key=place.key, **self._paying)
        except ObjectNotFound:
            return None
        return str(found["Metadata"].get(_WRITER, ""))

    def _require_conditional_writes(self) -> None:
        if self.root in _proved:
            return
        if self._created(_PROBE, b"", "probe") and self._created(_PROBE, b"", "probe"):
            raise UsageError(
                "this S3 server ignores If-None-Match",
                why="it overwrote an object that must only be created if absent, so two runs could both succeed",
                hint="set staging.root to an S3 server with conditional writes, to HDFS, or to a local folder",
                key=self.root,
            )
        _proved.add(self.root)

    def _pages(self, prefix: str, **more: str) -> tuple[dict[str, Any], ...]:
        place = self._place / prefix
        with self._errors(prefix):
            pages = self._client.get_paginator("list_objects_v2")
            return tuple(pages.paginate(Bucket=place.bucket, Prefix=place.key, **more, **self._paying))

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        place = self._place / key
        try:
            with s3_errors(place):
                yield
        except S3ObjectMissing as error:
            raise ObjectNotFound("no such object", key=place) from error
        except S3Unavailable as error:
            raise StoreUnavailable(error.what, why=error.why, hint=error.hint, key=place) from error
