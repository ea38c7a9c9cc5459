//! Authorities that have the same subject, as Puppet's has when it is made again under its default name.

use rustls::CertificateError::{Revoked, UnknownIssuer, UnknownRevocationStatus};

use super::*;

const NAME: &str = "Puppet CA: puppet";

/// A site with two authorities of one subject; certificates of the first have even numbers.
struct Migration {
    site: Site,
    both: [Authority; 2],
}

impl Migration {
    fn new() -> Self {
        let both = [authority(NAME), authority(NAME)];
        let site = Site::new();
        site.write("ca.pem", &format!("{}{}", both[0].pem(), both[1].pem()));
        Self { site, both }
    }

    /// Writes what each revokes, with the number of each list, in either order.
    fn write(&self, lists: [(u64, u64); 2], first: usize) {
        let list = |of: usize| numbered(lists[of].0, &self.both[of], lists[of].1, 2100);
        self.site.write("crl.pem", &format!("{}{}", list(first), list(1 - first)));
    }

    /// Returns which numbers of which authority are admitted.
    fn admitted(&self, tls: &Tls) -> [[bool; 2]; 2] {
        [0, 1].map(|of| [7, 8].map(|it| tls.check(&shown_by(it, &[&self.both[of]])).is_ok()))
    }
}

#[test]
fn each_authority_of_a_subject_has_its_own_list() {
    let migration = Migration::new();
    for first in [0, 1] {
        migration.write([(1, 7), (1, 8)], first);
        let tls = migration.site.open(REFUSE).unwrap();
        assert_eq!(migration.admitted(&tls), [[false, true], [true, false]]);
        // Neither older than its own list, whatever the other's number.
        migration.write([(2, 8), (9, 7)], first);
        assert_eq!(migration.site.reload(&tls), Ok(Reloaded::Loaded));
        assert_eq!(migration.admitted(&tls), [[true, false], [false, true]]);
        for older in [[(1, 7), (9, 7)], [(2, 8), (8, 8)]] {
            migration.write(older, first);
            let error = migration.site.reload(&tls).unwrap_err();
            assert!(error.contains("older than the one in use"), "{error}");
            assert_eq!(migration.admitted(&tls), [[true, false], [false, true]]);
        }
    }
}

#[test]
fn authorities_of_a_subject_may_have_keys_of_different_kinds() {
    let mut migration = Migration::new();
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    migration.both[1] = CertifiedIssuer::self_signed(authority_params(NAME), key).unwrap();
    let [one, two] = &migration.both;
    migration.site.write("ca.pem", &format!("{}{}", one.pem(), two.pem()));
    for first in [0, 1] {
        migration.write([(1, 7), (1, 8)], first);
        let tls = migration.site.open(REFUSE).unwrap();
        assert_eq!(migration.admitted(&tls), [[false, true], [true, false]]);
    }
}

#[test]
fn the_reason_of_a_refusal_is_that_of_the_authority_that_signed() {
    let migration = Migration::new();
    let mut expired = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    expired.not_before = date_time_ymd(2020, 1, 1);
    expired.not_after = date_time_ymd(2021, 1, 1);
    let forger = authority(NAME);
    for first in [0, 1] {
        migration.write([(1, 7), (1, 8)], first);
        let tls = migration.site.open(REFUSE).unwrap();
        let why = |shown: &ClientCertificate| tls.check(shown).unwrap_err();
        assert_eq!(why(&shown_by(7, &[&migration.both[0]])), Revoked.into());
        assert_eq!(why(&shown_by(8, &[&migration.both[1]])), Revoked.into());
        assert_eq!(why(&shown_by(8, &[&authority("Other CA")])), UnknownIssuer.into());
        let error = why(&shown_by(9, &[&forger]));
        assert_eq!(error, rustls::CertificateError::BadSignature.into());
        for of in &migration.both {
            let key = KeyPair::generate().unwrap();
            let chain = vec![expired.signed_by(&key, of).unwrap().der().clone()];
            let error = why(&ClientCertificate { facts: CertificateFacts::default(), chain });
            assert!(error.to_string().contains("expired"), "{error}");
        }
    }
}

#[test]
fn an_authority_without_a_list_is_missed_beside_one_of_its_subject() {
    let migration = Migration::new();
    let Migration { site, both: [first, second] } = &migration;
    for (with, without) in [(first, second), (second, first)] {
        site.write("crl.pem", &list(with, 7, 2100));
        let error = site.open(REFUSE).unwrap_err();
        assert!(error.contains("there is no revocation list in it that"), "{error}");
        let tls = site.open(CrlPolicy { missing: OnGap::Allow, ..REFUSE }).unwrap();
        assert_eq!(tls.warnings(jiff::Timestamp::now()).len(), 1);
        assert!(tls.check(&shown_by(7, &[without])).is_ok());
        assert_eq!(tls.check(&shown_by(7, &[with])).unwrap_err(), Revoked.into());
        // Certified by the other authority, it still refuses what is on its list.
        let mut shown = shown_by(7, &[with]);
        shown.chain.push(certified_by(with, NAME, without));
        assert_eq!(tls.check(&shown).unwrap_err(), Revoked.into());
        // Nor if the client sends what gives another reason.
        let mut other = authority_params(NAME);
        other.not_after = date_time_ymd(2021, 1, 1);
        let other = other.self_signed(&KeyPair::generate().unwrap()).unwrap();
        shown.chain.push(other.der().clone());
        let error = tls.check(&shown).unwrap_err();
        assert!(error.to_string().contains("expired"), "{error}");
        // An expired list refuses, here too.
        site.write("crl.pem", &list(with, 7, 2021));
        let tls = site.open(CrlPolicy { missing: OnGap::Allow, ..REFUSE }).unwrap();
        assert!(tls.check(&shown_by(8, &[without])).is_ok());
        assert!(tls.check(&shown_by(8, &[with])).is_err());
    }
}

#[test]
fn an_intermediate_authority_may_have_the_subject_of_its_root() {
    let site = Site::new();
    let root = authority(NAME);
    let middle = Site::below(&root, NAME);
    let lists = [list(&root, 99, 2100), list(&middle, 7, 2100)];
    for [one, other] in [[0, 1], [1, 0]] {
        site.write("crl.pem", &format!("{}{}", lists[one], lists[other]));
        let roots = [root.pem(), middle.pem()];
        site.write("ca.pem", &format!("{}{}", roots[one], roots[other]));
        let tls = site.open(REFUSE).unwrap();
        for chain in [&[&middle][..], &[&middle, &root]] {
            assert_eq!(tls.check(&shown_by(7, chain)).unwrap_err(), Revoked.into());
            tls.check(&shown_by(8, chain)).unwrap();
        }
        // Where it is not in the file, no verifier can have both lists: nothing is admitted without its own.
        site.write("ca.pem", &root.pem());
        for missing in [OnGap::Refuse, OnGap::Allow] {
            let tls = site.open(CrlPolicy { missing, ..REFUSE }).unwrap();
            tls.check(&shown_by(7, &[&middle])).unwrap_err();
            tls.check(&shown_by(8, &[&root])).unwrap();
        }
        site.write("crl.pem", &lists[1]);
        let tls = site.open(CrlPolicy { missing: OnGap::Allow, ..REFUSE }).unwrap();
        tls.check(&shown_by(7, &[&middle])).unwrap_err();
    }
}

#[test]
fn an_intermediate_authority_may_have_the_subject_of_another_root() {
    let site = Site::new();
    let (root, other) = (authority("Root CA"), authority(NAME));
    let middle = Site::below(&root, NAME);
    site.write("ca.pem", &format!("{}{}", other.pem(), root.pem()));
    let lists = [list(&other, 8, 2100), list(&middle, 7, 2100)];
    for [one, two] in [[0, 1], [1, 0]] {
        let crl = format!("{}{}{}", lists[one], list(&root, 99, 2100), lists[two]);
        site.write("crl.pem", &crl);
        let tls = site.open(REFUSE).unwrap();
        let admitted = |of| [7, 8].map(|it| tls.check(&shown_by(it, &[of])).is_ok());
        assert_eq!((admitted(&middle), admitted(&other)), ([false, true], [true, false]));
    }
    // Its own list is missing.
    site.write("crl.pem", &format!("{}{}", lists[0], list(&root, 99, 2100)));
    site.open(REFUSE).unwrap().check(&shown_by(9, &[&middle])).unwrap_err();
    let only_root = list(&root, 99, 2100);
    site.write("ca.pem", &root.pem());
    site.write("crl.pem", &only_root);
    let error = site.open(REFUSE).unwrap().check(&shown_by(9, &[&middle])).unwrap_err();
    assert_eq!(error, UnknownRevocationStatus.into());
}

#[tokio::test]
async fn an_open_connection_of_either_authority_is_verified_again() {
    let migration = Migration::new();
    migration.write([(1, 99), (1, 99)], 0);
    let tls = migration.site.open(REFUSE).unwrap();
    let [one, two] = [0, 1].map(|of| shown_by(7, &[&migration.both[of]]));
    migration.write([(1, 99), (2, 7)], 0);
    tls.reload(ReloadCause::Declared).unwrap();
    let reason = refused_after_reload(&tls, &two, &one).await;
    assert!(reason.contains("Revoked"), "{reason}");
}

/// Shakes hands, and returns what the daemon makes of it: the certname, or why it refuses.
async fn handshake(
    tls: &Tls,
    of: &Authority,
    number: u64,
    version: &'static rustls::SupportedProtocolVersion,
    server: &Authority,
) -> Result<String, String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (certificate, key) = signed_by(of, number);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(server.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate.der().clone()], key.into())
        .unwrap();
    let client = async {
        let stream = TcpStream::connect(address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let name = "localhost".try_into().unwrap();
        if let Ok(mut stream) = connector.connect(name, stream).await {
            let _closed = stream.read(&mut [0; 1]).await;
        }
    };
    let daemon = async {
        let (stream, _) = listener.accept().await.unwrap();
        let (accepted, refused) = Tls::noting_refusals(tls.accept(stream)).await;
        match accepted {
            Ok((_, certificate)) => Ok(certificate.unwrap().facts.certname),
            Err(_) => Err(refused.unwrap()),
        }
    };
    tokio::join!(client, daemon).1
}

#[tokio::test]
async fn handshakes_verify_certificates_of_either_authority() {
    let migration = Migration::new();
    for first in [0, 1] {
        migration.write([(1, 7), (1, 8)], first);
        let tls = migration.site.open(REFUSE).unwrap();
        let hints = tls.watched.load().clients.verifier.clone().unwrap();
        assert_eq!(hints.root_hint_subjects().len(), 2);
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            for (of, number, admitted) in [(0, 7, false), (0, 8, true), (1, 7, true), (1, 8, false)]
            {
                let of = &migration.both[of];
                let done = handshake(&tls, of, number, version, &migration.site.puppet).await;
                match done {
                    Ok(name) => assert!(admitted && name == format!("node{number}"), "{name}"),
                    Err(why) => assert!(!admitted && why.contains("Revoked"), "{why}"),
                }
            }
        }
    }
}
