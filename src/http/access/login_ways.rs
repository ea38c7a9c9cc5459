//! The ways in which callers authenticate here, for the answers to those who did not.

use std::fmt;

/// What this daemon takes as proof of who sends a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoginWays {
    /// Tokens.
    pub tokens: bool,
    /// Client certificates.
    pub certificates: bool,
    /// The header of a proxy.
    pub proxy: ProxyWay,
}

/// Whether a proxy names users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyWay {
    /// No proxy is trusted.
    #[default]
    Off,
    /// A proxy is trusted.
    On,
    /// A proxy is trusted, and the request has its header, but comes from another address.
    OtherAddress,
}

impl LoginWays {
    /// Returns why the header of a proxy is of no use, where a request has it.
    pub fn why_not_by_proxy(self) -> Option<&'static str> {
        let is_ignored = self.proxy == ProxyWay::OtherAddress;
        is_ignored.then_some(
            "The header that names a user is ignored: it comes from an address that is not in `--proxy-auth-from`.",
        )
    }

    /// Returns the same ways for a request whose header of a proxy is ignored, because of its address.
    pub(super) fn without_trust(self) -> Self {
        Self { proxy: ProxyWay::OtherAddress, ..self }
    }
}

/// Says what to do, as the end of a sentence, and why a header of the request was of no use.
impl fmt::Display for LoginWays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ways = [
            (self.tokens, "send a token"),
            (self.certificates, "use a client certificate"),
            (self.proxy != ProxyWay::Off, "sign in at the proxy in front of this daemon"),
        ];
        let ways: Vec<&str> = ways.iter().filter(|it| it.0).map(|it| it.1).collect();
        match ways.split_last() {
            None => f.write_str(
                "this daemon has none configured; start it with `--tokens-file`, `--tls-client-ca` or `--proxy-auth-header`",
            )?,
            Some((only, [])) => f.write_str(only)?,
            Some((last, others)) => write!(f, "{} or {last}", others.join(", "))?,
        }
        f.write_str(".")?;
        match self.why_not_by_proxy() {
            Some(why) => write!(f, " {why}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn only_the_configured_ways_are_named() {
        let rows = [
            ((true, false, ProxyWay::Off), "send a token."),
            ((false, true, ProxyWay::Off), "use a client certificate."),
            ((true, true, ProxyWay::Off), "send a token or use a client certificate."),
            ((false, false, ProxyWay::On), "sign in at the proxy in front of this daemon."),
            (
                (true, true, ProxyWay::On),
                "send a token, use a client certificate or sign in at the proxy in front of this daemon.",
            ),
        ];
        each_row(rows, |((tokens, certificates, proxy), expected)| {
            assert_eq!(LoginWays { tokens, certificates, proxy }.to_string(), expected);
        });
        assert!(LoginWays::default().to_string().contains("--tokens-file"));
        let ignored = LoginWays { tokens: true, ..LoginWays::default() }.without_trust();
        assert!(ignored.to_string().ends_with("not in `--proxy-auth-from`."), "{ignored}");
    }
}
