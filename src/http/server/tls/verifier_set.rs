//! Verifies client certificates by several verifiers.
//!
//! A certificate that one of them accepts is refused where another has a reason of its own, as a revocation list that it
//! is on. It must be any such reason: the client chooses which authorities it sends, and of several reasons the TLS
//! library returns one.

use std::sync::Arc;

use rustls::CertRevocationListError::IssuerInvalidForCrl;
use rustls::CertificateError::{
    BadSignature, ExpiredRevocationList, ExpiredRevocationListContext, Revoked, UnknownIssuer,
    UnknownRevocationStatus, UnsupportedSignatureAlgorithmContext,
    UnsupportedSignatureAlgorithmForPublicKeyContext,
};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// Accepts a certificate that one of the verifiers accepts, if the others do not know its authority.
#[derive(Debug)]
pub(super) struct VerifierSet {
    first: Arc<dyn ClientCertVerifier>,
    others: Vec<Arc<dyn ClientCertVerifier>>,
    /// The subjects of all authorities.
    subjects: Vec<DistinguishedName>,
}

/// How much a refusal says about a certificate, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RefusalWeight {
    UnknownIssuer,
    /// An authority of the same name has another key.
    OtherKey,
    /// A list of the same name has another key.
    OtherList,
    NoList,
    /// Its authority is found, and something is wrong with the certificate itself.
    Certificate,
    ExpiredList,
    Revoked,
}

impl RefusalWeight {
    fn of(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(UnknownIssuer) => Self::UnknownIssuer,
            Error::InvalidCertificate(
                BadSignature
                | UnsupportedSignatureAlgorithmContext { .. }
                | UnsupportedSignatureAlgorithmForPublicKeyContext { .. },
            ) => Self::OtherKey,
            Error::InvalidCertRevocationList(IssuerInvalidForCrl) => Self::Certificate,
            Error::InvalidCertRevocationList(_) => Self::OtherList,
            Error::InvalidCertificate(UnknownRevocationStatus) => Self::NoList,
            Error::InvalidCertificate(
                ExpiredRevocationList | ExpiredRevocationListContext { .. },
            ) => Self::ExpiredList,
            Error::InvalidCertificate(Revoked) => Self::Revoked,
            _ => Self::Certificate,
        }
    }

    /// Returns whether no other verifier knows better: the key of its authority is known to this one.
    fn is_final(self) -> bool {
        self > Self::OtherList
    }
}

impl VerifierSet {
    /// Returns one verifier that stands for all; `None` without verifiers.
    pub(super) fn of(
        verifiers: Vec<Arc<dyn ClientCertVerifier>>,
        subjects: Vec<DistinguishedName>,
    ) -> Option<Arc<dyn ClientCertVerifier>> {
        let mut verifiers = verifiers.into_iter();
        let (first, others) = (verifiers.next()?, verifiers.collect::<Vec<_>>());
        if others.is_empty() {
            Some(first)
        } else {
            Some(Arc::new(Self { first, others, subjects }))
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<dyn ClientCertVerifier>> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl ClientCertVerifier for VerifierSet {
    fn offer_client_auth(&self) -> bool {
        self.first.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.first.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let (mut accepted, mut refusals) = (None, Vec::new());
        for verifier in self.all() {
            match verifier.verify_client_cert(end_entity, intermediates, now) {
                Ok(verified) => accepted = Some(verified),
                Err(error) => refusals.push((RefusalWeight::of(&error), error)),
            }
        }
        let heaviest = refusals.into_iter().max_by_key(|it| it.0);
        match (accepted, heaviest) {
            (Some(verified), None) => Ok(verified),
            (Some(verified), Some((weight, _))) if !weight.is_final() => Ok(verified),
            (_, Some((_, error))) => Err(error),
            (None, None) => Err(UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.first.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.first.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.first.supported_verify_schemes()
    }
}
