"""Deploys the project's own template.yaml into the emulator, and mends there what it does not do as AWS does."""

import json
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from local import package, template
from local.emulator import Emulator, EmulatorError

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".build"
STACK = "clubladder"
ARTIFACTS = "clubladder-artifacts"


@dataclass(frozen=True)
class Deployment:
    """What is where in the emulator."""

    outputs: Mapping[str, str]
    physical: Mapping[str, str]  # logical id -> name in the emulator
    api_id: str
    site_host: str

    def __getitem__(self, logical_id: str) -> str:
        return self.physical[logical_id]


def deploy(emulator: Emulator, *, origin: str, parameters: Mapping[str, str] | None = None) -> Deployment:
    """Create the stack. `origin` is the one address under which readers and clubs will find it."""
    document = template.read()
    functions = {
        name: name.removesuffix("Function").lower() for name in template.of_type(document, "AWS::Serverless::Function")
    }
    _upload_packages(emulator, functions)
    for name, short in functions.items():
        document["Resources"][name]["Properties"]["CodeUri"] = f"s3://{ARTIFACTS}/{short}.zip"
    _tell_functions_where_they_are(document, origin)
    _leave_out_tls(document)
    _leave_out_metric_math(document)
    outputs = _create_stack(emulator, document, parameters or {})
    cloudformation = emulator.client("cloudformation")
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=STACK)
    physical = {
        resource["LogicalResourceId"]: resource["PhysicalResourceId"]
        for page in pages
        for resource in page["StackResourceSummaries"]
    }
    deployment = Deployment(outputs, physical, physical["HttpApi"], outputs["DistributionDomain"])
    _make_routes(emulator, deployment)
    return deployment


def _upload_packages(emulator: Emulator, functions: Mapping[str, str]) -> None:
    CACHE.mkdir(exist_ok=True)
    uv = ROOT / ".venv" / "bin" / "uv"
    dependencies = package.local_dependencies(CACHE, uv=str(uv) if uv.exists() else shutil.which("uv") or "uv")
    s3 = emulator.client("s3")
    s3.create_bucket(Bucket=ARTIFACTS, CreateBucketConfiguration={"LocationConstraint": s3.meta.region_name})
    with TemporaryDirectory(prefix="clubladder-") as directory:
        for short in functions.values():
            sources, archive = Path(directory) / short, Path(directory) / f"{short}.zip"
            package.copy_sources(short, sources)
            package.compile_bytes(sources)
            shutil.copyfile(dependencies.with_suffix(".zip"), archive)
            package.zip_directory(sources, archive, append=True)
            s3.upload_file(str(archive), ARTIFACTS, archive.name)


def _tell_functions_where_they_are(document: Mapping[str, Any], origin: str) -> None:
    """On one machine site and API are one origin, which the template cannot know.

    Before deploying: a function that is told later starts anew, and loses what its queue has just handed to it.
    """
    functions = template.of_type(document, "AWS::Serverless::Function").values()
    for owner in (document["Globals"]["Function"], *(function["Properties"] for function in functions)):
        variables = owner.get("Environment", {}).get("Variables", {})
        variables.update({name: origin for name in ("SITE_ORIGIN", "API_ORIGIN") if name in variables})


def _leave_out_tls(document: Mapping[str, Any]) -> None:
    """Mend: the emulator speaks plain HTTP on this machine, so buckets that take only TLS would answer nobody."""
    for policy in template.of_type(document, "AWS::S3::BucketPolicy").values():
        statements = policy["Properties"]["PolicyDocument"]["Statement"]
        statements[:] = [statement for statement in statements if statement["Sid"] != "TlsOnly"]
    for name, policy in list(template.of_type(document, "AWS::S3::BucketPolicy").items()):
        if not policy["Properties"]["PolicyDocument"]["Statement"]:
            del document["Resources"][name]


def _leave_out_metric_math(document: dict[str, Any]) -> None:
    """Mend: the emulator refuses alarms over several metrics, and nobody is alarmed on this machine anyway."""
    for name, alarm in template.of_type(document, "AWS::CloudWatch::Alarm").items():
        if "Metrics" in alarm["Properties"]:
            del document["Resources"][name]


def _create_stack(emulator: Emulator, document: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, str]:
    emulator.client("s3").put_object(Bucket=ARTIFACTS, Key="template.json", Body=json.dumps(document).encode())
    cloudformation = emulator.client("cloudformation")
    cloudformation.create_stack(
        StackName=STACK,
        TemplateURL=f"{emulator.url}/{ARTIFACTS}/template.json",
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    )
    deadline = time.monotonic() + 120
    while True:
        stack = cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]
        if stack["StackStatus"] == "CREATE_COMPLETE":
            return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
        if stack["StackStatus"] != "CREATE_IN_PROGRESS" or time.monotonic() > deadline:
            events = cloudformation.describe_stack_events(StackName=STACK)["StackEvents"]
            failed = [
                f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}"
                for event in events
                if "FAILED" in event["ResourceStatus"]
            ]
            message = f"the template could not be deployed ({stack['StackStatus']}): {'; '.join(failed)}"
            raise EmulatorError(message)
        time.sleep(0.05)


def _make_routes(emulator: Emulator, deployment: Deployment) -> None:
    """Mend: the emulator ignores the body that the SAM transform gives an HTTP API; make its routes one by one."""
    gateway = emulator.client("apigatewayv2")
    if gateway.get_routes(ApiId=deployment.api_id)["Items"]:
        return
    processed = emulator.client("cloudformation").get_template(StackName=STACK, TemplateStage="Processed")[
        "TemplateBody"
    ]
    document = json.loads(processed) if isinstance(processed, str) else processed
    functions = emulator.client("lambda")
    for path, methods in document["Resources"]["HttpApi"]["Properties"]["Body"]["paths"].items():
        for method, operation in methods.items():
            uri = json.dumps(operation["x-amazon-apigateway-integration"]["uri"])
            found = re.search(r"\$\{(\w+)\.Arn\}", uri)
            if not found:
                message = f"a route without a function: {uri}"
                raise EmulatorError(message)
            arn = functions.get_function(FunctionName=deployment[found[1]])["Configuration"]["FunctionArn"]
            integration = gateway.create_integration(
                ApiId=deployment.api_id, IntegrationType="AWS_PROXY", IntegrationUri=arn, PayloadFormatVersion="2.0"
            )
            method_name = "ANY" if method == "x-amazon-apigateway-any-method" else method.upper()
            gateway.create_route(
                ApiId=deployment.api_id,
                RouteKey="$default" if path == "/$default" else f"{method_name} {path}",
                Target=f"integrations/{integration['IntegrationId']}",
            )
