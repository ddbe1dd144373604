"""The environment of a function as one small model: parsed once, checked, never read anywhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """What a deployment tells its functions. A test holds the names against ``template.yaml``."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    table_name: str = Field(alias="TABLE_NAME", min_length=1)
    data_bucket: str = Field(alias="DATA_BUCKET", min_length=1)
    site_bucket: str = Field(alias="SITE_BUCKET", min_length=1)
    publish_queue_url: str = Field(alias="PUBLISH_QUEUE_URL", min_length=1)
    publish_delay_seconds: int = Field(alias="PUBLISH_DELAY_SECONDS", default=60, ge=0, le=900)
    """How long changes of a pool are gathered before its pages are written."""
    failed_queue_url: str = Field(alias="FAILED_QUEUE_URL", default="")
    """Where a pool that could not be rated is reported; only the rater and the closing need it."""
    site_origin: str = Field(alias="SITE_ORIGIN", default="")
    """``https://...`` of the public site, without a slash at the end."""
    api_origin: str = Field(alias="API_ORIGIN", default="")
    """``https://...`` of the API; the publisher writes it into ``/site.json`` for the desk."""
    key_requests_per_minute: int = Field(alias="KEY_REQUESTS_PER_MINUTE", default=0, ge=0)
    """Requests a minute of one key, and of one address without a key; 0: no limit."""
    pool_requests_per_minute: int = Field(alias="POOL_REQUESTS_PER_MINUTE", default=0, ge=0)
    """Changing requests a minute to one pool, over all clubs; 0: no limit."""
    stage: str = Field(alias="STAGE", default="dev")


def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process. Raises pydantic.ValidationError naming every variable that is missing."""
    return Settings.model_validate(dict(os.environ if environment is None else environment))
