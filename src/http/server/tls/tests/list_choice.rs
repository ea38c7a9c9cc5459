//! Several lists of one authority in the file.

use rcgen::{CrlDistributionPoint, CrlIssuingDistributionPoint, CrlScope};

use super::*;

/// A list of the authority with a number, from a day of 2020.
struct Choice {
    number: u64,
    day: u8,
    revoked: u64,
    until: i32,
    scope: Option<CrlScope>,
}

impl Choice {
    fn new(number: u64, day: u8, revoked: u64) -> Self {
        Self { number, day, revoked, until: 2100, scope: None }
    }

    fn pem(&self, of: &Authority) -> String {
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, self.day),
            next_update: date_time_ymd(self.until, 1, 2),
            crl_number: SerialNumber::from(self.number),
            issuing_distribution_point: self.scope.map(|scope| CrlIssuingDistributionPoint {
                distribution_point: CrlDistributionPoint { uris: vec!["http://ca/crl".to_owned()] },
                scope: Some(scope),
            }),
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(self.revoked),
                revocation_time: date_time_ymd(2020, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(of).unwrap().pem().unwrap()
    }
}

/// Both orders of two lists.
fn orders(first: &str, second: &str) -> [String; 2] {
    [format!("{first}{second}"), format!("{second}{first}")]
}

#[test]
fn the_newest_list_of_an_authority_counts_wherever_it_is_in_the_file() {
    let site = Site::new();
    let list = |number, day, revoked| Choice::new(number, day, revoked).pem(&site.puppet);
    for (older, newer) in [
        // By number, whatever the time; by the time where the numbers are the same.
        (list(1, 1, 7), list(2, 1, 9)),
        (list(255, 3, 7), list(256, 2, 9)),
        (list(1, 1, 7), list(1, 2, 9)),
    ] {
        for crl in orders(&older, &newer) {
            site.write("crl.pem", &crl);
            let tls = site.open(REFUSE).unwrap();
            assert_eq!((site.admits(&tls, 7), site.admits(&tls, 9)), (true, false));
        }
    }
}

#[test]
fn a_reload_takes_the_newest_list_and_forgets_older_ones() {
    let site = Site::new();
    let older = Choice { until: 2021, ..Choice::new(1, 1, 7) }.pem(&site.puppet);
    let newer = Choice::new(2, 1, 9).pem(&site.puppet);
    for crl in orders(&older, &newer) {
        site.write("crl.pem", &Choice::new(1, 1, 7).pem(&site.puppet));
        let tls = site.open(REFUSE).unwrap();
        assert!(site.admits(&tls, 9));
        site.write("crl.pem", &crl);
        assert_eq!(site.reload(&tls), Ok(Reloaded::Loaded));
        assert_eq!((site.admits(&tls, 7), site.admits(&tls, 9)), (true, false));
        // The older one expired; it is not in use.
        assert_eq!(tls.warnings(jiff::Timestamp::now()), Vec::<String>::new());
    }
}

#[test]
fn copies_of_a_list_are_one_and_lists_that_contradict_each_other_are_refused() {
    let site = Site::new();
    let list = |revoked| Choice::new(1, 1, revoked).pem(&site.puppet);
    // The signatures differ.
    let (one, same, other) = (list(7), list(7), list(9));
    assert_ne!(one, same);
    for copies in [format!("{one}{one}"), format!("{one}{same}")] {
        site.write("crl.pem", &copies);
        assert!(!site.admits(&site.open(REFUSE).unwrap(), 7));
    }
    for crl in orders(&one, &other) {
        site.write("crl.pem", &crl);
        let error = site.open(REFUSE).unwrap_err();
        let said = "`CN=Puppet CA` has two revocation lists in it, and neither is the newer one";
        assert!(error.contains("crl.pem") && error.contains(said), "{error}");
    }
    // A newer one makes it plain.
    site.write("crl.pem", &format!("{one}{other}{}", Choice::new(2, 1, 8).pem(&site.puppet)));
    assert!(!site.admits(&site.open(REFUSE).unwrap(), 8));
}

#[test]
fn each_list_that_covers_a_certificate_can_refuse_it() {
    let site = Site::new();
    let users = |number, revoked| {
        let scope = Some(CrlScope::UserCertsOnly);
        Choice { scope, ..Choice::new(number, 1, revoked) }.pem(&site.puppet)
    };
    let all = Choice::new(5, 1, 7).pem(&site.puppet);
    for crl in orders(&all, &users(1, 9)) {
        site.write("crl.pem", &crl);
        let tls = site.open(REFUSE).unwrap();
        assert_eq!([7, 8, 9].map(|it| site.admits(&tls, it)), [false, true, false]);
    }
    // Each is as new as it was, and no older.
    site.write("crl.pem", &format!("{}{all}", users(2, 9)));
    let tls = site.open(REFUSE).unwrap();
    site.write("crl.pem", &format!("{}{all}", users(1, 8)));
    let error = site.reload(&tls).unwrap_err();
    assert!(error.contains("is older than the one in use"), "{error}");
    // Nor is one of another scope, alone.
    site.write("crl.pem", &Choice::new(5, 1, 7).pem(&site.puppet));
    let tls = site.open(REFUSE).unwrap();
    site.write("crl.pem", &users(1, 9));
    site.reload(&tls).unwrap_err();
    // It says nothing of authorities.
    let scope = Some(CrlScope::CaCertsOnly);
    site.write("crl.pem", &Choice { scope, ..Choice::new(1, 1, 7) }.pem(&site.puppet));
    assert!(!site.admits(&site.open(REFUSE).unwrap(), 8));
}

#[test]
fn a_delta_of_a_list_is_refused() {
    let site = Site::new();
    let (ca, list, delta) = (
        include_str!("../../../../../tests/fixtures/crl/ca.pem"),
        include_str!("../../../../../tests/fixtures/crl/complete.pem"),
        include_str!("../../../../../tests/fixtures/crl/delta.pem"),
    );
    site.write("ca.pem", ca);
    site.write("crl.pem", list);
    site.open(REFUSE).unwrap();
    for crl in orders(list, delta) {
        site.write("crl.pem", &crl);
        let error = site.open(REFUSE).unwrap_err();
        assert!(error.contains("UnsupportedDeltaCrl"), "{error}");
    }
}

#[test]
fn lists_of_an_authority_that_a_client_sends_are_chosen_as_well() {
    let site = Site::new();
    let middle = site.intermediate("Middle CA");
    let other = authority("Middle CA");
    let root = list(&site.puppet, 99, 2100);
    for middles in orders(&numbered(1, &middle, 7, 2100), &numbered(2, &middle, 9, 2100)) {
        // One of the same name, with another key, is not in the way.
        for crl in orders(&middles, &numbered(3, &other, 8, 2100)) {
            site.write("crl.pem", &format!("{crl}{root}"));
            let tls = site.open(REFUSE).unwrap();
            let admitted = [7, 8, 9].map(|it| tls.check(&shown_by(it, &[&middle])).is_ok());
            assert_eq!(admitted, [true, true, false]);
        }
    }
    site.write("crl.pem", &root);
    let error = site.open(REFUSE).unwrap().check(&shown_by(8, &[&middle])).unwrap_err();
    assert_eq!(error, rustls::CertificateError::UnknownRevocationStatus.into());
    site.write("crl.pem", &format!("{root}{}", numbered(2, &middle, 9, 2100)));
    let tls = site.open(REFUSE).unwrap();
    site.write("crl.pem", &format!("{root}{}", numbered(1, &middle, 7, 2100)));
    let error = site.reload(&tls).unwrap_err();
    assert!(error.contains("list of `CN=Middle CA` is older than the one in use"), "{error}");
}
