#![expect(clippy::disallowed_methods, reason = "certificates are files")]

mod list_choice;
mod same_subject;

use super::*;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn authority(name: &str) -> Authority {
    CertifiedIssuer::self_signed(authority_params(name), KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for the key of an authority, signed by another one.
fn certified_by(of: &Authority, name: &str, by: &Authority) -> CertificateDer<'static> {
    authority_params(name).signed_by(of.key(), by).unwrap().der().clone()
}

fn signed_by(of: &Authority, number: u64) -> (rcgen::Certificate, KeyPair) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, format!("node{number}"));
    params.serial_number = Some(SerialNumber::from(number));
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, of).unwrap(), key)
}

/// What a client shows: a certificate of the first authority, and the certificates of all.
fn shown_by(number: u64, of: &[&Authority]) -> ClientCertificate {
    let mut chain = vec![signed_by(of[0], number).0.der().clone()];
    chain.extend(of.iter().map(|it| it.der().clone()));
    ClientCertificate { facts: CertificateFacts::default(), chain }
}

/// A list that revokes one number, valid until a year.
fn list(of: &Authority, revoked: u64, until: i32) -> String {
    numbered(1, of, revoked, until)
}

/// The same, with a number.
fn numbered(number: u64, of: &Authority, revoked: u64, until: i32) -> String {
    let revoked = RevokedCertParams {
        serial_number: SerialNumber::from(revoked),
        revocation_time: date_time_ymd(2020, 1, 1),
        reason_code: None,
        invalidity_date: None,
    };
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(2020, 1, 1),
        next_update: date_time_ymd(until, 1, 1),
        crl_number: SerialNumber::from(number),
        issuing_distribution_point: None,
        revoked_certs: vec![revoked],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params.signed_by(of).unwrap().pem().unwrap()
}

struct Site {
    directory: tempfile::TempDir,
    puppet: Authority,
}

impl Site {
    fn new() -> Self {
        let site = Self { directory: tempfile::tempdir().unwrap(), puppet: authority("Puppet CA") };
        let (own, key) = site.sign(1);
        site.write("cert.pem", &own.pem());
        site.write("key.pem", &key.serialize_pem());
        site.write("ca.pem", &site.puppet.pem());
        site
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).unwrap();
    }

    fn sign(&self, number: u64) -> (rcgen::Certificate, KeyPair) {
        signed_by(&self.puppet, number)
    }

    /// Makes an authority that Puppet's has signed.
    fn intermediate(&self, name: &str) -> Authority {
        Self::below(&self.puppet, name)
    }

    fn below(root: &Authority, name: &str) -> Authority {
        let params = authority_params(name);
        CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), root).unwrap()
    }

    fn open(&self, policy: CrlPolicy) -> Result<Tls, String> {
        let path = |name: &str| self.directory.path().join(name);
        let files = TlsFiles {
            certificate: path("cert.pem"),
            key: path("key.pem"),
            client_ca: Some(path("ca.pem")),
            client_crl: Some(path("crl.pem")),
            policy,
        };
        Tls::open(files).map_err(|it| it.to_string())
    }

    /// Writes a certificate of the daemon that expired, and its key.
    fn write_expired(&self) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "clade.example.com");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 2, 3);
        let key = KeyPair::generate().unwrap();
        self.write("cert.pem", &params.signed_by(&key, &self.puppet).unwrap().pem());
        self.write("key.pem", &key.serialize_pem());
    }

    fn shown(&self, number: u64) -> ClientCertificate {
        let chain = vec![self.sign(number).0.der().clone()];
        let facts = CertificateFacts::default();
        ClientCertificate { facts, chain }
    }

    /// Reads files that changed, once they have settled.
    #[expect(clippy::unused_self, reason = "it is the site's files that are read")]
    fn reload(&self, tls: &Tls) -> Result<Reloaded, String> {
        tls.reload(ReloadCause::Declared).ok();
        std::thread::sleep(crate::config::watched::SETTLE);
        tls.reload(ReloadCause::Declared).map_err(|it| it.to_string())
    }

    fn admits(&self, tls: &Tls, number: u64) -> bool {
        tls.check(&self.shown(number)).is_ok()
    }
}

const REFUSE: CrlPolicy = CrlPolicy { missing: OnGap::Refuse, expired: OnGap::Refuse };

#[test]
fn a_start_demands_a_revocation_list_of_every_authority() {
    let site = Site::new();
    let other = authority("Other CA");
    let forged = authority("Puppet CA");
    for (crl, reason) in [
        (String::new(), "there is no revocation list in it"),
        ("# nothing\n".to_owned(), "there is no revocation list in it"),
        (list(&other, 7, 2100), "there is no revocation list in it that `CN=Puppet CA` issued"),
        (list(&forged, 7, 2100), "there is no revocation list in it that `CN=Puppet CA` issued"),
    ] {
        site.write("crl.pem", &crl);
        let error = site.open(REFUSE).unwrap_err();
        assert!(error.contains("crl.pem") && error.contains(reason), "{error}");
    }
    let half = list(&site.puppet, 7, 2100);
    site.write("crl.pem", half.get(..half.len() / 2).unwrap());
    site.open(REFUSE).unwrap_err();
    // Two authorities, one list.
    site.write("ca.pem", &format!("{}{}", site.puppet.pem(), other.pem()));
    site.write("crl.pem", &list(&site.puppet, 7, 2100));
    let error = site.open(REFUSE).unwrap_err();
    assert!(
        error.contains("`CN=Other CA`") && error.contains("--tls-client-crl-missing"),
        "{error}"
    );
    site.write("crl.pem", &format!("{}{}", list(&site.puppet, 7, 2100), list(&other, 7, 2100)));
    let tls = site.open(REFUSE).unwrap();
    assert_eq!((site.admits(&tls, 7), site.admits(&tls, 8)), (false, true));
}

#[test]
fn an_authority_without_a_list_is_accepted_by_a_setting_and_a_warning() {
    let site = Site::new();
    let other = authority("Other CA");
    site.write("crl.pem", &list(&other, 7, 2100));
    let tls = site.open(CrlPolicy { missing: OnGap::Allow, ..REFUSE }).unwrap();
    assert!(site.admits(&tls, 7));
    let warnings = tls.warnings(jiff::Timestamp::now());
    assert!(warnings.len() == 1 && warnings[0].contains("`CN=Puppet CA`"), "{warnings:?}");
    // None at all is a mistake, whatever the setting.
    site.write("crl.pem", "");
    site.open(CrlPolicy { missing: OnGap::Allow, expired: OnGap::Allow }).unwrap_err();
}

#[test]
fn an_expired_list_refuses_what_it_covers_unless_a_setting_says_otherwise() {
    let site = Site::new();
    site.write("crl.pem", &list(&site.puppet, 7, 2021));
    let tls = site.open(REFUSE).unwrap();
    assert_eq!((site.admits(&tls, 7), site.admits(&tls, 8)), (false, false));
    let warnings = tls.warnings(jiff::Timestamp::now()).concat();
    assert!(warnings.contains("expired at 2021-01-01T00:00:00Z"), "{warnings}");
    let tls = site.open(CrlPolicy { expired: OnGap::Allow, ..REFUSE }).unwrap();
    assert_eq!((site.admits(&tls, 7), site.admits(&tls, 8)), (false, true));
    assert_eq!(tls.warnings(jiff::Timestamp::now()).len(), 1);
}

#[test]
fn a_reload_keeps_the_list_that_is_known_until_a_good_one_comes() {
    let site = Site::new();
    site.write("crl.pem", &list(&site.puppet, 7, 2100));
    let tls = site.open(REFUSE).unwrap();
    let look = || {
        tls.reload(ReloadCause::Poll).ok();
        std::thread::sleep(crate::config::watched::SETTLE);
        tls.reload(ReloadCause::Poll).map_err(|it| it.to_string())
    };
    let other = list(&authority("Other CA"), 9, 2100);
    for bad in [String::new(), other, list(&site.puppet, 9, 2021)] {
        site.write("crl.pem", &bad);
        look().unwrap_err();
        assert_eq!((site.admits(&tls, 7), site.admits(&tls, 9)), (false, true), "{bad}");
    }
    site.write("crl.pem", &list(&site.puppet, 9, 2100));
    assert_eq!(look(), Ok(Reloaded::Loaded));
    assert_eq!((site.admits(&tls, 7), site.admits(&tls, 9)), (true, false));
}

#[test]
fn a_reload_refuses_a_list_that_is_older_than_the_one_in_use() {
    let site = Site::new();
    let other = authority("Other CA");
    site.write("ca.pem", &format!("{}{}", site.puppet.pem(), other.pem()));
    let write = |ours: u64, revoked: u64, others: u64| {
        let lists = numbered(ours, &site.puppet, revoked, 2100);
        site.write("crl.pem", &format!("{lists}{}", numbered(others, &other, 1, 2100)));
    };
    write(258, 9, 3);
    let tls = site.open(REFUSE).unwrap();
    let look = || {
        tls.reload(ReloadCause::Poll).ok();
        std::thread::sleep(crate::config::watched::SETTLE);
        tls.reload(ReloadCause::Poll).map_err(|it| it.to_string())
    };
    // As it was before the node was revoked.
    for (ours, others, issuer) in [(257, 3, "CN=Puppet CA"), (258, 2, "CN=Other CA")] {
        write(ours, 7, others);
        let error = look().unwrap_err();
        assert!(
            error.contains(&format!("list of `{issuer}` is older than the one in use")),
            "{error}"
        );
        assert_eq!((site.admits(&tls, 7), site.admits(&tls, 9)), (true, false));
    }
    write(258, 8, 4);
    assert_eq!(look(), Ok(Reloaded::Loaded));
    assert_eq!((site.admits(&tls, 8), site.admits(&tls, 9)), (false, true));
    // What a restart finds is not compared with anything.
    write(1, 9, 1);
    assert!(!site.admits(&site.open(REFUSE).unwrap(), 9));
}

/// Loads files once more when they have settled; returns why the first certificate is refused then, and the other is not.
async fn refused_after_reload(
    tls: &Tls,
    refused: &ClientCertificate,
    good: &ClientCertificate,
) -> String {
    let reload = async {
        tokio::time::sleep(crate::config::watched::SETTLE).await;
        tls.reload(ReloadCause::Declared).unwrap();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        reason = tls.until_refused(refused) => reason,
        _ = tls.until_refused(good) => panic!("the wrong one was refused"),
        () = reload => unreachable!("it is pending"),
    }
}

#[tokio::test]
async fn an_open_connection_learns_that_its_certificate_was_revoked() {
    let site = Site::new();
    site.write("crl.pem", &list(&site.puppet, 7, 2100));
    let tls = site.open(REFUSE).unwrap();
    let (good, revoked) = (site.shown(8), site.shown(9));
    site.write("crl.pem", &list(&site.puppet, 9, 2100));
    tls.reload(ReloadCause::Declared).unwrap();
    let reason = refused_after_reload(&tls, &revoked, &good).await;
    assert!(reason.contains("`CN=node9`"), "{reason}");
}

#[test]
fn a_list_that_expired_while_in_use_does_not_keep_others_from_being_loaded() {
    let site = Site::new();
    let other = authority("Other CA");
    site.write("ca.pem", &format!("{}{}", site.puppet.pem(), other.pem()));
    let expired = list(&other, 7, 2021);
    site.write("crl.pem", &format!("{}{expired}", list(&site.puppet, 7, 2100)));
    let tls = site.open(REFUSE).unwrap();
    assert_eq!((site.admits(&tls, 8), site.admits(&tls, 9)), (true, true));
    site.write("crl.pem", &format!("{}{expired}", numbered(2, &site.puppet, 9, 2100)));
    assert_eq!(site.reload(&tls), Ok(Reloaded::Loaded));
    assert_eq!((site.admits(&tls, 8), site.admits(&tls, 9)), (true, false));
    assert!(tls.check(&shown_by(8, &[&other])).is_err());
    assert!(tls.warnings(jiff::Timestamp::now()).concat().contains("`CN=Other CA` expired"));
}

#[test]
fn an_open_connection_waits_for_the_first_expiry() {
    let site = Site::new();
    site.write("crl.pem", &list(&site.puppet, 7, 2100));
    let tls = site.open(REFUSE).unwrap();
    let now = jiff::Timestamp::from_millisecond(1_000_500).unwrap();
    for (certificates, milliseconds) in
        [(&[2000, 1003][..], 3500), (&[1000], 500), (&[999, 1001], 1500)]
    {
        assert_eq!(
            tls.until_expiry(certificates, now),
            Duration::from_millis(milliseconds),
            "{certificates:?}"
        );
    }
    // The list comes next.
    let list = tls.valid_until().iter().map(|it| it.1).min().unwrap();
    let left = Duration::from_secs(u64::try_from(list).unwrap() - 1000);
    assert!(tls.until_expiry(&[], now).abs_diff(left) < Duration::from_secs(1));
}

#[test]
fn an_expired_certificate_of_the_daemon_is_said() {
    let site = Site::new();
    site.write_expired();
    site.write("crl.pem", &list(&site.puppet, 7, 2100));
    let tls = site.open(REFUSE).unwrap();
    let warnings = tls.warnings(jiff::Timestamp::now());
    let said = "the daemon's certificate expired at 2021-02-03T00:00:00Z";
    assert!(
        warnings[0].contains(said) && warnings[0].contains("clade.example.com"),
        "{warnings:?}"
    );
    assert_eq!(tls.valid_until()[0], ("certificate", 1_612_310_400));
}

#[test]
fn a_list_is_loaded_beside_an_expired_certificate_that_is_in_use() {
    let site = Site::new();
    site.write_expired();
    site.write("crl.pem", &list(&site.puppet, 7, 2100));
    let tls = site.open(REFUSE).unwrap();
    assert!(site.admits(&tls, 9));
    site.write("crl.pem", &numbered(2, &site.puppet, 9, 2100));
    tls.reload(ReloadCause::Declared).ok();
    std::thread::sleep(crate::config::watched::SETTLE);
    assert_eq!(
        tls.reload(ReloadCause::Declared).map_err(|it| it.to_string()),
        Ok(Reloaded::Loaded)
    );
    assert!(!site.admits(&tls, 9));
}

#[test]
fn an_expired_certificate_does_not_replace_one() {
    let site = Site::new();
    site.write("crl.pem", &list(&site.puppet, 7, 2100));
    let tls = site.open(REFUSE).unwrap();
    site.write_expired();
    let reload = || {
        tls.reload(ReloadCause::Declared).ok();
        std::thread::sleep(crate::config::watched::SETTLE);
        tls.reload(ReloadCause::Declared).map_err(|it| it.to_string())
    };
    let said = reload().unwrap_err();
    assert!(
        said.contains("cert.pem` cannot be used: the certificate expired at 2021-02-03"),
        "{said}"
    );
    assert_eq!(tls.warnings(jiff::Timestamp::now()), Vec::<String>::new());
    let (own, key) = site.sign(2);
    site.write("cert.pem", &own.pem());
    site.write("key.pem", &key.serialize_pem());
    reload().unwrap();
}
