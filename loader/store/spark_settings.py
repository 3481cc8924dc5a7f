"""The configuration with which Spark reads a staging root: with the server, region and rights of the loader's client.

S3A: https://hadoop.apache.org/docs/r3.4.2/hadoop-aws/tools/hadoop-aws/index.html
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from loader.s3 import S3Address, authorities_of_machine, open_client
from loader.store.address import HdfsOptions, S3Options, split_address

# Hadoop's default chain skips ~/.aws and the roles of Kubernetes, which boto3 uses.
_CREDENTIALS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")
_ENCRYPTION = {"s3": "AES256", "kms": "SSE-KMS"}


def spark_conf(root: str) -> dict[str, str]:
    """Return Spark's configuration for the bucket of a root on S3, without secrets; empty for other roots.

    Each driver and executor finds credentials itself, like every AWS client.

    Raises:
        UsageError: boto3 is not installed, or the AWS settings of the machine are invalid.
    """
    if not root.startswith("s3://"):
        return {}
    address, options = split_address(root, S3Options)
    # S3A does not look where boto3 finds a missing address and region.
    machine = open_client(endpoint=options.endpoint, region=options.region).meta
    found = {"aws.credentials.provider": _CREDENTIALS, "endpoint.region": machine.region_name}
    if not (urlsplit(machine.endpoint_url).hostname or "").endswith(_AMAZON):
        # As boto3 does: servers other than AWS rarely have a DNS name for each bucket.
        found |= {"endpoint": machine.endpoint_url, "path.style.access": "true"}
    if options.path_style:
        found["path.style.access"] = "true"
    if options.sse:
        found["encryption.algorithm"] = _ENCRYPTION[options.sse]
    if options.kms_key:
        found["encryption.key"] = options.kms_key
    if options.requester_pays:
        found["requester.pays.enabled"] = "true"
    prefix = f"spark.hadoop.fs.s3a.bucket.{S3Address.parse(address).bucket}"
    return {f"{prefix}.{name}": value for name, value in found.items()}


def trusted_authorities(root: str) -> str:
    """Return the PEM file of authorities that the JVMs of Spark must trust for a root on S3; empty for none."""
    if not root.startswith("s3://"):
        return ""
    if named := split_address(root, S3Options)[1].tls_ca:
        return named
    found = authorities_of_machine()
    return found if Path(found).is_file() else ""  # a folder is of use to boto3 only


def hadoop_user(root: str) -> str:
    """Return the user of Spark on a root on HDFS; empty for the user of the process."""
    return split_address(root, HdfsOptions)[1].user if root.startswith("hdfs://") else ""
