"""The edge: what CloudFront is told, path by path."""

from __future__ import annotations

import re
from typing import Any

import pytest

from local import template

DOCUMENT = template.read()
RESOURCES: dict[str, dict[str, Any]] = DOCUMENT["Resources"]
SITE: dict[str, Any] = RESOURCES["Distribution"]["Properties"]["DistributionConfig"]
BEHAVIOURS: dict[str, dict[str, Any]] = {
    "(all else)": SITE["DefaultCacheBehavior"],
    **{b["PathPattern"]: b for b in SITE["CacheBehaviors"]},
}
YEAR = 31_536_000


def headers(path: str) -> dict[str, Any]:
    name = BEHAVIOURS[path]["ResponseHeadersPolicyId"]["Ref"]
    found: dict[str, Any] = RESOURCES[name]["Properties"]["ResponseHeadersPolicyConfig"]
    return found


def cache(path: str) -> dict[str, Any]:
    name = BEHAVIOURS[path]["CachePolicyId"]["Ref"]
    found: dict[str, Any] = RESOURCES[name]["Properties"]["CachePolicyConfig"]
    return found


def test_http3_and_ipv6_and_the_start_page() -> None:
    assert SITE["HttpVersion"] == "http2and3"
    assert SITE["IPV6Enabled"] is True
    assert SITE["DefaultRootObject"] == "index.html"


def test_the_paths_with_rules_of_their_own() -> None:
    assert list(BEHAVIOURS) == ["(all else)", "/assets/*", "/embed/*"]


@pytest.mark.parametrize("path", BEHAVIOURS)
def test_every_path_is_https_compressed_and_only_read(path: str) -> None:
    behaviour = BEHAVIOURS[path]
    assert behaviour["ViewerProtocolPolicy"] == "redirect-to-https"
    assert behaviour["Compress"] is True
    assert behaviour["AllowedMethods"] == ["GET", "HEAD"]
    key = cache(path)["ParametersInCacheKeyAndForwardedToOrigin"]
    assert key["EnableAcceptEncodingBrotli"] is key["EnableAcceptEncodingGzip"] is True
    # Neither cookies nor queries nor headers reach the bucket or split the cache.
    assert key["CookiesConfig"] == {"CookieBehavior": "none"}
    assert key["HeadersConfig"] == {"HeaderBehavior": "none"}
    assert key["QueryStringsConfig"] == {"QueryStringBehavior": "none"}


@pytest.mark.parametrize("path", BEHAVIOURS)
def test_every_path_has_security_headers(path: str) -> None:
    found = headers(path)["SecurityHeadersConfig"]
    hsts = found["StrictTransportSecurity"]
    assert hsts["AccessControlMaxAgeSec"] >= YEAR
    assert hsts["Override"] is True
    assert found["ContentTypeOptions"] == {"Override": True}
    assert found["ReferrerPolicy"]["ReferrerPolicy"] == "strict-origin-when-cross-origin"


@pytest.mark.parametrize("path", ["(all else)", "/embed/*"])
@pytest.mark.parametrize("api", ["", "api.example.org"])
def test_pages_run_nothing_but_the_sites_own(path: str, api: str) -> None:
    resolve = template.Resolver(
        DOCUMENT, {"AWS::Region": "eu-central-1", "AWS::URLSuffix": "amazonaws.com", "ApiDomainName": api}
    )
    text = resolve(headers(path)["SecurityHeadersConfig"]["ContentSecurityPolicy"]["ContentSecurityPolicy"])
    rules = {name: rest for name, _, rest in (part.strip().partition(" ") for part in text.split(";"))}
    assert rules["default-src"] == rules["script-src"] == rules["style-src"] == "'self'"
    assert rules["object-src"] == rules["base-uri"] == "'none'"
    assert "unsafe" not in text
    assert "http:" not in text
    # Names that would close a circle: the API's without a domain of its own, the bucket that takes uploads.
    unknown = {f"https://*.{service}.eu-central-1.amazonaws.com" for service in ("execute-api", "s3")}
    assert {place for place in rules["connect-src"].split() if "*" in place} <= unknown
    assert rules["frame-ancestors"] == ("*" if path == "/embed/*" else "'none'")
    if api and path != "/embed/*":
        assert "https://api.example.org" in rules["connect-src"].split()
        assert "execute-api" not in rules["connect-src"]


def test_assets_stay_a_year_and_pages_are_asked_for_again() -> None:
    assert cache("/assets/*")["DefaultTTL"] == cache("/assets/*")["MaxTTL"] == YEAR
    (asset,) = headers("/assets/*")["CustomHeadersConfig"]["Items"]
    assert (asset["Value"], asset["Override"]) == (f"public, max-age={YEAR}, immutable", True)
    for path in ("(all else)", "/embed/*"):
        assert cache(path)["DefaultTTL"] <= 60
        assert cache(path)["MaxTTL"] <= 300
        (page,) = headers(path)["CustomHeadersConfig"]["Items"]
        assert "must-revalidate" in page["Value"]
        assert "max-age=0" in page["Value"]


def test_a_folder_and_its_index_are_the_same_object() -> None:
    for path in ("(all else)", "/embed/*"):
        (function,) = BEHAVIOURS[path]["FunctionAssociations"]
        assert function == {
            "EventType": "viewer-request",
            "FunctionARN": {"Fn::GetAtt": ["IndexFunction", "FunctionARN"]},
        }
    code = RESOURCES["IndexFunction"]["Properties"]["FunctionCode"]
    # The function's rules, read out of it: what ends in a slash gets index.html, a file stays, a folder gets its slash.
    assert re.search(r"if \(request\.uri\.endsWith\('/'\)\) \{\s*request\.uri \+= 'index\.html';\s*\}", code)
    assert "else if (!request.uri.split('/').pop().includes('.'))" in code
    assert "'https://' + request.headers.host.value + request.uri + '/'" in code, "never to a host that a path names"
    assert "/assets/*" not in [p for p, b in BEHAVIOURS.items() if "FunctionAssociations" in b]


def test_a_missing_page_is_a_404_with_a_page() -> None:
    """Without ListBucket the bucket says 403 of what is missing; readers are told the truth."""
    mapped = {e["ErrorCode"]: (e["ResponseCode"], e["ResponsePagePath"]) for e in SITE["CustomErrorResponses"]}
    assert mapped == {403: (404, "/404.html"), 404: (404, "/404.html")}
    assert all(e["ErrorCachingMinTTL"] <= 60 for e in SITE["CustomErrorResponses"])


@pytest.mark.parametrize(
    ("given", "limit", "expected"),
    [("", "0", None), ("arn:ours", "0", "arn:ours"), ("", "2000", "made"), ("arn:ours", "2000", "arn:ours")],
)
def test_a_web_acl_is_taken_or_made_or_left_out(given: str, limit: str, expected: str | None) -> None:
    values = {"WebAclArn": given, "SiteRequestsPer5Minutes": limit, "WebAcl.Arn": "made", "AWS::Region": "us-east-1"}
    resolve = template.Resolver(DOCUMENT, values)
    assert resolve({"acl": SITE["WebACLId"]}).get("acl") == expected
    acl = RESOURCES["WebAcl"]
    assert resolve.holds({"Condition": acl["Condition"]}) is (expected == "made")


def test_the_rate_rule_blocks_an_address_and_nothing_else() -> None:
    acl = RESOURCES["WebAcl"]["Properties"]
    assert acl["Scope"] == "CLOUDFRONT"
    assert acl["DefaultAction"] == {"Allow": {}}
    (rule,) = acl["Rules"]
    statement = rule["Statement"]["RateBasedStatement"]
    assert statement == {
        "Limit": {"Ref": "SiteRequestsPer5Minutes"},
        "AggregateKeyType": "IP",
        "EvaluationWindowSec": 300,
    }
    assert "Block" in rule["Action"]


def test_old_tls_is_refused() -> None:
    resolve = template.Resolver(DOCUMENT, {"DomainName": "ladder.example.org", "CertificateArn": "arn"})
    assert resolve(SITE["ViewerCertificate"])["MinimumProtocolVersion"] == "TLSv1.2_2021"
    (api,) = RESOURCES["ApiDomain"]["Properties"]["DomainNameConfigurations"]
    assert api["SecurityPolicy"] == "TLS_1_2"


def test_the_bucket_is_reached_only_through_the_distribution() -> None:
    (origin,) = SITE["Origins"]
    assert origin["OriginAccessControlId"] == {"Fn::GetAtt": ["SiteAccess", "Id"]}
    access = RESOURCES["SiteAccess"]["Properties"]["OriginAccessControlConfig"]
    assert (access["SigningBehavior"], access["SigningProtocol"]) == ("always", "sigv4")
