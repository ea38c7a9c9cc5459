//! Who a request is from, and what it may do.

use super::*;

#[test]
#[expect(clippy::disallowed_methods, reason = "files to read")]
fn classification_without_check_in_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let hash = "a".repeat(64);
    let token = |roles: &str| format!("- name: t\n  sha256: {hash}\n  roles: [{roles}]\n");
    let allowed = |roles: &str| format!("- certname: puppet\n  roles: [{roles}]\n");
    for (tokens, certificates, noticed) in [
        (Some("classify"), None, true),
        (Some("classify, check-in"), None, false),
        (None, Some("classify, read"), true),
        (None, Some("read"), false),
        (Some("read"), Some("classify"), true),
        (Some("check-in"), Some("classify"), false),
        (None, None, false),
    ] {
        let tokens_file = tokens.map(|it| file("tokens", &token(it)));
        let allowed_file = certificates.map(|it| file("allowed", &allowed(it)));
        let access = Access::new(tokens_file, true, allowed_file, false).unwrap();
        assert_eq!(access.keeps_nothing(), noticed, "{tokens:?} {certificates:?}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "files to read")]
fn entries_that_allow_nothing_are_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let hash = "a".repeat(64);
    let tokens = file("tokens", &format!("- name: ci\n  sha256: {hash}\n"));
    let certificates =
        "- certname: a\n  roles: []\n- extension: pp_role=b\n- certname: c\n  roles: [read]\n";
    let allowed = file("allowed", certificates);
    let users = file("users", "- user: ada\n- user: '*'\n  roles: [read]\n");
    let access = Access::new(Some(tokens), true, Some(allowed), false).unwrap();
    let header = "X-User".parse().unwrap();
    let access = access.behind_proxy(header, Vec::new(), Some(users)).unwrap();
    let entries = [
        "ci` of --tokens-file",
        "a` of --tls-allow",
        "pp_role=b` of --tls-allow",
        "ada` of --proxy-auth-allow",
    ];
    let expected = entries.map(|it| {
        format!("the entry `{it} has no `roles` and allows nothing: give it roles, or remove it")
    });
    assert_eq!(access.warnings(), expected);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "files to read")]
fn a_malformed_entry_is_named_by_file_line_and_column() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tok.yaml");
    std::fs::write(&path, "- name: ci\n  sha256: abc\n").unwrap();
    let error =
        anyhow::Error::new(Access::new(Some(path.clone()), false, None, false).unwrap_err());
    let expected = format!("the tokens cannot be used: {}:2:11: `sha256` must be ", path.display());
    assert!(format!("{error:#}").starts_with(&expected), "{error:#}");
}

fn certificate(certname: &str) -> Arc<CertificateFacts> {
    Arc::new(CertificateFacts { certname: certname.to_owned(), ..CertificateFacts::default() })
}

fn proved(certificate: &Arc<CertificateFacts>) -> KnownSender<'_> {
    KnownSender { certificate: Some(certificate), ..KnownSender::default() }
}

#[test]
fn an_agent_may_ask_for_its_own_node_alone() {
    let access = Access { certificates: true, ..Access::default() };
    let own = certificate("web1.example.com");
    let caller = access.caller(None, &proved(&own), UnknownTokens::Refused).unwrap();
    for (requirement, node, may) in [
        (Requirement::NodeInPath(Role::Classify), Some("web1.example.com"), true),
        (Requirement::NodeInPath(Role::Read), Some("web1.example.com"), true),
        (Requirement::NodeInPath(Role::Classify), Some("web2.example.com"), false),
        (Requirement::NodeInPath(Role::Classify), None, false),
        (Requirement::NodeInPath(Role::Operate), Some("web1.example.com"), false),
        (Requirement::NodeInBody(Role::CheckIn), None, true),
        (Requirement::NodeInBody(Role::Write), None, false),
        (Requirement::Role(Role::Read), Some("web1.example.com"), false),
        (Requirement::Role(Role::Classify), None, false),
    ] {
        assert_eq!(requirement.check(&caller, node).is_ok(), may, "{requirement:?} {node:?}");
    }
    assert_eq!(caller.classifies("web1.example.com"), Submitted::KeptAsProved(own));
    assert_eq!(caller.classifies("web2.example.com"), Submitted::AnswerOnly);
    let anonymous = access.caller(None, &KnownSender::default(), UnknownTokens::Refused).unwrap();
    let own = Requirement::NodeInPath(Role::Classify);
    assert!(own.check(&anonymous, Some("web1.example.com")).is_err());
    assert!(Requirement::Probe.check(&anonymous, None).is_ok());
}

#[test]
fn another_commit_needs_a_grant_to_read_that_has_what_the_route_needs_as_well() {
    let own = certificate("web1");
    let all = |roles: &[Role]| {
        Held::for_all(Holder::Anonymous, Arc::new(Grant::everywhere(Roles::of(roles))))
    };
    let (classify, read, both) =
        (all(&[Role::Classify]), all(&[Role::Read]), all(&[Role::Classify, Role::Read]));
    for (grants, to_classify, to_read) in [
        (vec![], false, false),
        (vec![classify.clone()], false, false),
        (vec![read.clone()], false, true),
        (vec![classify.clone(), read.clone()], false, true),
        (vec![Held::own_node(&own)], false, false),
        (vec![Held::own_node(&own), read], false, true),
        (vec![classify, both], true, true),
    ] {
        let caller = Caller { grants: grants.into(), ..Caller::default() };
        let found = [Role::Classify, Role::Read].map(|it| caller.may_read_beside(Some(it)));
        assert_eq!(found, [to_classify, to_read], "{caller:?}");
    }
}

#[test]
fn anonymous_callers_classify_and_read_where_that_is_allowed() {
    let may = |access: &Access| -> Vec<Role> {
        let caller = access.caller(None, &KnownSender::default(), UnknownTokens::Refused).unwrap();
        Role::ALL.into_iter().filter(|role| caller.may(*role, Some("n"))).collect()
    };
    let anonymous = Access { anonymous: true, ..Access::default() };
    assert_eq!(may(&anonymous), [Role::Classify, Role::Read]);
    assert_eq!(may(&Access::default()), Role::ALL);
    let closed = Access { certificates: true, ..Access::default() };
    assert_eq!(may(&closed), []);
}

#[test]
fn an_agent_proves_itself_where_anonymous_callers_may_classify() {
    let access = Access { anonymous: true, certificates: true, ..Access::default() };
    let own = certificate("web1");
    let caller = access.caller(None, &proved(&own), UnknownTokens::Refused).unwrap();
    assert_eq!(caller.classifies("web1"), Submitted::KeptAsProved(own));
    assert_eq!(caller.classifies("web2"), Submitted::AnswerOnly);
    assert!(caller.may(Role::Classify, Some("web2")));
}

#[test]
fn tokens_are_taken_from_either_header() {
    let of = |name: &'static str, value: &[u8]| {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_bytes(value).unwrap());
        token_in(&headers).map(<[u8]>::to_vec)
    };
    assert_eq!(of("x-authentication", b"abc"), Some(b"abc".to_vec()));
    // An unknown token is rejected; a token that is not text must not count as absent.
    assert_eq!(of("x-authentication", b"a\xffc"), Some(b"a\xffc".to_vec()));
    assert_eq!(of("authorization", b"Bearer abc"), Some(b"abc".to_vec()));
    assert_eq!(of("authorization", b"bearer  abc"), Some(b"abc".to_vec()));
    assert_eq!(of("authorization", b"Basic abc"), None);
}

fn request(method: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().method(method).uri("/v1/groups");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "files to read")]
fn grants_of_a_certificate_a_user_and_a_token_never_widen_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    };
    // The token is `hello`.
    let hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let tokens = file("tokens", &format!("- {{name: ada, sha256: {hash}, roles: [write]}}\n"));
    let allowed = file("allowed", "- {certname: ada, roles: [operate]}\n");
    let users = file("users", "- {user: ada, roles: [read]}\n");
    let access = Access::new(tokens, true, allowed, false).unwrap();
    let networks = vec!["192.0.2.7".parse().unwrap()];
    let access = access.behind_proxy("X-User".parse().unwrap(), networks, users).unwrap();
    assert!(!access.is_open());
    let own = certificate("ada");
    let (user, token) = (("x-user", "ada"), ("x-authentication", "hello"));
    let (proxy, elsewhere) = ("192.0.2.7", "192.0.2.8");
    for (headers, certificate, address, name, roles) in [
        // A name means something to the file of its own kind alone.
        (&[user][..], None, proxy, Some("ada"), &[Role::Read][..]),
        (&[token], None, proxy, Some("ada"), &[Role::Write]),
        (&[], Some(&own), proxy, Some("ada"), &[Role::Operate]),
        (&[user, token], Some(&own), proxy, Some("ada"), &[Role::Read, Role::Write, Role::Operate]),
        (&[user], None, elsewhere, None, &[]),
        (&[user, token], None, elsewhere, Some("ada"), &[Role::Write]),
        (&[user], Some(&own), elsewhere, Some("ada"), &[Role::Operate]),
        (&[("x-user", "eve")], None, proxy, Some("eve"), &[]),
        (&[("x-user", "eve"), token], None, proxy, Some("ada"), &[Role::Write]),
        (&[], None, proxy, None, &[]),
    ] {
        let address = Some(address.parse().unwrap());
        let peer = PeerIdentity { certificate, address };
        let caller =
            access.identify(&request("GET", headers), peer, UnknownTokens::Refused).unwrap();
        let has: Vec<Role> = Role::ALL.into_iter().filter(|it| caller.may(*it, None)).collect();
        assert_eq!((caller.name(), &*has), (name, roles), "{headers:?}");
        assert!(caller.grants.iter().all(|it| it.grant.roles != Roles::all()));
    }
}

#[test]
fn pages_of_other_sites_do_not_act_for_users_of_the_proxy() {
    let networks = vec!["192.0.2.7".parse().unwrap()];
    let access = Access::default().behind_proxy("X-User".parse().unwrap(), networks, None).unwrap();
    let (user, twice) = (("x-user", "ada"), [("x-user", "ada"), ("x-user", "eve")]);
    let address = Some("192.0.2.7".parse().unwrap());
    let peer = PeerIdentity { certificate: None, address };
    let cross = ("sec-fetch-site", "cross-site");
    for (method, headers, is_accepted) in [
        ("GET", &[user][..], true),
        ("GET", &[user, cross], false),
        ("POST", &[user, cross], false),
        ("POST", &[user, ("origin", "https://evil.example"), ("host", "clade")], false),
        ("GET", &twice, false),
    ] {
        let found = access.identify(&request(method, headers), peer, UnknownTokens::Refused);
        assert_eq!(found.is_ok(), is_accepted, "{method} {headers:?}");
    }
    let known = |headers: &[(&str, &str)], peer| {
        access.known_sender(request("GET", headers).headers(), peer)
    };
    let own = certificate("ada");
    let proved = PeerIdentity { certificate: Some(&own), address: None };
    assert_eq!(known(&[user], peer).unwrap().as_deref(), Some("user ada"));
    assert_eq!(known(&[user], proved).unwrap().as_deref(), Some("certificate ada"));
    assert_eq!(known(&[user], PeerIdentity::default()).unwrap(), None);
    assert!(known(&twice, peer).is_err());
}
