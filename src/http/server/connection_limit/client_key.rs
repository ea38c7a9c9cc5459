//! Which client a connection counts for.

use std::fmt;
use std::net::IpAddr;

/// The client that a connection counts for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::http::server) enum ClientKey {
    /// An address; of IPv6 the network of 64 bits, which belongs to one site.
    Address(IpAddr),
    /// The certname of a client certificate.
    Certificate(String),
    /// A process on this machine, through the unix socket.
    Local,
}

impl fmt::Display for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Certificate(certname) => certname.fmt(f),
            Self::Local => f.write_str("local"),
        }
    }
}

impl From<IpAddr> for ClientKey {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(it) => {
                let network = it.to_bits() & !u128::from(u64::MAX);
                Self::Address(IpAddr::V6(network.into()))
            }
            it @ IpAddr::V4(_) => Self::Address(it),
        }
    }
}
