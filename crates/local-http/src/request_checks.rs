//! Which requests are answered. A browser of this host shows pages of other sites, and sends the
//! requests that these pages make. Their `Host`, `Origin` and `Sec-Fetch-Site` fields tell them
//! from requests of this server's own pages and of programs.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The field with a request's origin (W3C Fetch Metadata).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The field that says which sites' pages may use a response (Fetch standard, section 3.7).
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Fields of each response, unless the router sets them. They keep it out of caches, out of other
/// sites' pages and frames, and keep its address out of `Referer` fields.
const PROTECTING_FIELDS: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// The text for a person who used another host name.
const OTHER_HOST_TEXT: &str = "this server has no such name: ask for localhost\n";
/// The text for a person who followed a link of another site.
const OTHER_SITE_TEXT: &str = "this server answers no other site: type its address into the browser\n";

/// Returns the response to a request that is refused. `None`: it is not refused.
pub(crate) fn refusal(request: &Request) -> Option<(StatusCode, &'static str)> {
    match host_field(request.headers()) {
        Some(host) if is_this_host(host) && request.uri().host().is_none_or(is_this_host) => {
            let is_other = !is_of_this_origin(request.headers(), host);
            is_other.then_some((StatusCode::FORBIDDEN, OTHER_SITE_TEXT))
        }
        _ => Some((StatusCode::MISDIRECTED_REQUEST, OTHER_HOST_TEXT)),
    }
}

/// Adds the fields that protect an answer.
pub(crate) fn protect(fields: &mut HeaderMap) {
    for (name, value) in PROTECTING_FIELDS {
        fields.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// The request's `Host`. A request has exactly one (RFC 9112, section 3.2). A proxy on this host
/// may read another of two.
fn host_field(fields: &HeaderMap) -> Option<&str> {
    let mut hosts = fields.get_all(HOST).iter();
    let host = hosts.next()?.to_str().ok()?;
    hosts.next().is_none().then_some(host)
}

/// Whether a `Host` (RFC 9110, section 7.2) is a loopback address or `localhost`, with or without a
/// port.
fn is_this_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.starts_with('+') && port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let address: Option<IpAddr> = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => name.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    };
    name.eq_ignore_ascii_case("localhost") || address.is_some_and(|it| it.to_canonical().is_loopback())
}

/// Whether a program, a person or a page of this server makes the request. Browsers tell all other
/// requests by one of the two fields. A page at another port of this host is another origin.
fn is_of_this_origin(fields: &HeaderMap, host: &str) -> bool {
    let is_own = |origin: &HeaderValue| {
        let authority = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
    };
    let is_own_site = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    fields.get_all(ORIGIN).iter().all(is_own) && fields.get_all(SEC_FETCH_SITE).iter().all(is_own_site)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn refused(uri: &str, fields: &[(&str, &str)]) -> Option<u16> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        refusal(&request.body(Body::empty()).unwrap()).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_a_loopback_address_and_localhost_name_this_host() {
        for host in [
            "localhost",
            "LocalHost:80",
            "127.0.0.1",
            "127.9.0.1:4751",
            "[::1]",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
        ] {
            assert_eq!(refused("/", &[("host", host)]), None, "{host}");
        }
        for host in [
            "127.evil.example",
            "127.evil.example:4751",
            "127.",
            "127.0.0.1.nip.io",
            "localhost.evil.example",
            "[::1].evil.example",
            "evil.example",
            "127.0.0.1:80:80",
            "192.0.2.1",
            "0.0.0.0",
            "::1",
            "",
            ":80",
            "localhost@evil.example",
            "127.0.0.1@evil.example",
            "localhost.",
            "127.0.0.1.",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "[::1",
            "[::1]evil.example",
            "[::]",
            "[::ffff:192.0.2.1]",
            "[fe80::1%25lo]",
            "localhost:80:80",
            "localhost:99999",
            "localhost:+80",
            "localhost:-1",
            "localhost:",
            "localhost,evil.example",
            "localhost evil.example",
            "xn--lclhost-2fg",
            "l\u{f6}calhost",
        ] {
            assert_eq!(refused("/", &[("host", host)]), Some(421), "{host}");
        }
    }

    #[test]
    fn a_request_names_one_host_and_no_other_anywhere() {
        for fields in [
            &[][..],
            &[("host", "localhost"), ("host", "localhost")],
            &[("host", "localhost"), ("host", "evil.example")],
            &[("host", "evil.example"), ("host", "localhost")],
        ] {
            assert_eq!(refused("/", fields), Some(421), "{fields:?}");
        }
        let at = |uri: &str| refused(uri, &[("host", "localhost")]);
        assert_eq!(at("http://evil.example/healthz"), Some(421));
        assert_eq!(at("http://localhost@evil.example/healthz"), Some(421));
        assert_eq!(at("http://[::1]/healthz"), None);
    }

    #[test]
    fn a_page_of_another_origin_gets_no_answer() {
        let with = |name: &str, value: &str| refused("/", &[("host", "127.0.0.1:4751"), (name, value)]);
        for site in ["cross-site", "same-site", "", "None", "same-origin, none"] {
            assert_eq!(with("sec-fetch-site", site), Some(403), "{site}");
        }
        for site in ["same-origin", "none"] {
            assert_eq!(with("sec-fetch-site", site), None, "{site}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://127.0.0.1",
            "http://127.0.0.1:4752",
            "http://localhost:4751",
            "https://127.0.0.1:4751",
            "http://127.0.0.1:4751.evil.example",
            "http://127.0.0.1:4751/",
            "HTTP://127.0.0.1:4751",
        ] {
            assert_eq!(with("origin", origin), Some(403), "{origin}");
        }
        assert_eq!(with("origin", "http://127.0.0.1:4751"), None);
        let both = [("origin", "http://127.0.0.1:4751"), ("origin", "http://evil.example")];
        assert_eq!(refused("/", &[&[("host", "127.0.0.1:4751")], &both[..]].concat()), Some(403));
        let told = [("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")];
        assert_eq!(refused("/", &[&[("host", "127.0.0.1:4751")], &told[..]].concat()), Some(403));
    }

    #[test]
    fn an_answer_keeps_the_fields_that_its_router_sets() {
        let mut fields = HeaderMap::new();
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
        protect(&mut fields);
        assert_eq!(fields[CACHE_CONTROL], "max-age=60");
        assert_eq!(fields[CROSS_ORIGIN_RESOURCE_POLICY], "same-origin");
        assert_eq!(fields.len(), PROTECTING_FIELDS.len());
    }
}
