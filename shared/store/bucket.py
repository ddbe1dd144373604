"""Objects in S3: whole in themselves, compared by their content's MD5 before they are written."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from zlib import crc32

from botocore.exceptions import BotoCoreError, ClientError

from shared.store.table import Busy

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

DELETE_KEYS = 1000
_TROUBLES = {"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "503", "500"}


def etag(body: bytes) -> str:
    """The ETag that S3 gives a single-part object (bucket encryption with S3 keys): the MD5 in hex."""
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


@contextmanager
def _busy() -> Iterator[None]:
    """S3 is throttled, down or out of reach, after the client's own attempts: busy, as the table would be."""
    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in _TROUBLES:
            raise Busy("s3") from error
        raise
    except BotoCoreError as error:
        raise Busy("s3") from error


class Bucket:
    """One bucket of the deployment. Every call raises ``Busy`` when S3 does not answer."""

    def __init__(self, client: S3Client, name: str) -> None:
        self.client = client
        self.name = name

    def get(self, key: str) -> bytes | None:
        """An object's bytes, or None when there is none."""
        try:
            with _busy():
                return self.client.get_object(Bucket=self.name, Key=key)["Body"].read()
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in ("NoSuchKey", "404"):
                return None
            raise

    def put(self, key: str, body: bytes, content_type: str, cache_control: str | None = None) -> None:
        """Write an object whole, with its checksum."""
        more = {"CacheControl": cache_control} if cache_control else {}
        with _busy():
            self.client.put_object(
                Bucket=self.name,
                Key=key,
                Body=body,
                ContentType=content_type,
                ChecksumCRC32=base64.b64encode(crc32(body).to_bytes(4, "big")).decode(),  # a quarter of an MD5's time
                **more,  # type: ignore[arg-type]
            )

    def upload_form(self, key: str, most: int, seconds: int) -> dict[str, Any]:
        """``url`` and ``fields`` of a form that writes one object of 1 to ``most`` bytes, without our keys.

        Args:
            seconds: for so long the form may be sent.
        """
        kind = {"Content-Type": "application/octet-stream"}
        return self.client.generate_presigned_post(
            Bucket=self.name,
            Key=key,
            Fields=dict(kind),
            Conditions=[["content-length-range", 1, most], kind],
            ExpiresIn=seconds,
        )

    def download_url(self, key: str, seconds: int) -> str:
        """An address under which anybody may read an object for so long, as a file to be saved."""
        name = key.rpartition("/")[2]
        wanted = {"Bucket": self.name, "Key": key, "ResponseContentDisposition": f'attachment; filename="{name}"'}
        return self.client.generate_presigned_url("get_object", Params=wanted, ExpiresIn=seconds)

    def etag(self, key: str) -> str | None:
        """The ETag of an object, or None when there is none."""
        try:
            with _busy():
                return self.client.head_object(Bucket=self.name, Key=key)["ETag"].strip('"')
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in ("NoSuchKey", "404", "NotFound"):
                return None
            raise

    def list(self, prefix: str) -> Iterator[tuple[str, str]]:
        """Every object below a prefix, in key order: (key, ETag)."""
        with _busy():
            for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix):
                for entry in page.get("Contents", []):
                    yield entry["Key"], entry["ETag"].strip('"')

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; those that are gone already are no error."""
        for start in range(0, len(keys), DELETE_KEYS):
            chunk = keys[start : start + DELETE_KEYS]
            wanted: Any = {"Objects": [{"Key": k} for k in chunk], "Quiet": True}
            with _busy():
                self.client.delete_objects(Bucket=self.name, Delete=wanted)
