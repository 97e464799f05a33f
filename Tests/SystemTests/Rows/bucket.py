"""Creates the bucket of SAFELIGHT_OBJECT_STORE with boto3. Waits at most a minute until the store answers."""

import os
import time

import boto3
import botocore.config
import botocore.exceptions

store = boto3.client(
    "s3", endpoint_url=os.environ["SAFELIGHT_OBJECT_STORE_ENDPOINT"], region_name="us-east-1",
    config=botocore.config.Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
)
bucket = os.environ["SAFELIGHT_OBJECT_STORE"].removeprefix("s3://").split("/")[0]
end = time.monotonic() + 60
while True:
    try:
        try:
            store.create_bucket(Bucket=bucket)
        except store.exceptions.BucketAlreadyOwnedByYou:
            pass
        # create_bucket needs only Swift's account and container servers; these also need its object server.
        store.put_object(Bucket=bucket, Key="ready", Body=b"")
        store.delete_object(Bucket=bucket, Key="ready")
        break
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
        if time.monotonic() > end:
            raise
        time.sleep(0.1)
