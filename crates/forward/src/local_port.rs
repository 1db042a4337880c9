//! Which local port leads to which target, as a person writes it: `[ADDRESS:]PORT:HOST:PORT`.

use crate::forward_target::{Target, TargetError};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::str::FromStr;

/// Why a text is no forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// Parts are missing.
    #[error("write [ADDRESS:]PORT:HOST:PORT, like 8730:localhost:873")]
    Form,
    /// The address to listen on is none.
    #[error("the address to listen on is no IP address of this host; IPv6 stands in brackets")]
    Address,
    /// The port to listen on is no number.
    #[error("the port to listen on is a number from 0 to 65535; 0 lets the system choose")]
    Port,
    /// The target of the forward is invalid.
    #[error("the target: {0}")]
    Target(#[from] TargetError),
}

/// A local port that leads to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The address to which programs connect. Loopback, unless another one is given.
    pub listen: SocketAddr,
    /// The host and port to which the exit connects for this local port.
    pub target: Target,
}

impl FromStr for Forward {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        let (first, rest) = match text.strip_prefix('[') {
            Some(inner) => {
                let (inner, rest) = inner.split_once("]:").ok_or(ForwardError::Form)?;
                (Some(IpAddr::from(inner.parse::<Ipv6Addr>().map_err(|_| ForwardError::Address)?)), rest)
            }
            None => {
                let (first, rest) = text.split_once(':').ok_or(ForwardError::Form)?;
                match first.parse::<Ipv4Addr>() {
                    Ok(v4) => (Some(v4.into()), rest),
                    Err(_) if first.contains('.') => return Err(ForwardError::Address),
                    Err(_) => (None, text),
                }
            }
        };
        let (port, target) = rest.split_once(':').ok_or(ForwardError::Form)?;
        if !target.contains(':') {
            return Err(ForwardError::Form);
        }
        let port = listening(port)?;
        let ip = first.unwrap_or(Ipv4Addr::LOCALHOST.into());
        Ok(Self { listen: SocketAddr::new(ip, port), target: target.parse()? })
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.listen, self.target)
    }
}

/// Reads the address for SOCKS5: `[ADDRESS:]PORT`.
///
/// # Errors
/// It is no address and port.
pub fn socks_listen(text: &str) -> Result<SocketAddr, ForwardError> {
    if text.contains(':') {
        return text.parse().map_err(|_| ForwardError::Address);
    }
    Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), listening(text)?))
}

fn listening(port: &str) -> Result<u16, ForwardError> {
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse().ok().filter(|_| digits).ok_or(ForwardError::Port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString as _;

    #[test]
    fn forwards_are_read_as_people_write_them() {
        for (text, shown) in [
            ("8730:localhost:873", "127.0.0.1:8730:localhost:873"),
            ("0:[::1]:873", "127.0.0.1:0:[::1]:873"),
            ("0.0.0.0:80:10.0.0.1:8080", "0.0.0.0:80:10.0.0.1:8080"),
            ("[::1]:80:a.b:8080", "[::1]:80:a.b:8080"),
        ] {
            assert_eq!(text.parse::<Forward>().unwrap().to_string(), shown);
        }
        for (text, error) in [
            ("8730", ForwardError::Form),
            ("localhost:873", ForwardError::Form),
            ("8730:873", ForwardError::Form),
            ("[::1]80:a:1", ForwardError::Form),
            ("[10.0.0.1]:80:a:1", ForwardError::Address),
            ("10.0.0:80:a:1", ForwardError::Address),
            ("65536:a:1", ForwardError::Port),
            ("localhost:80:a:1", ForwardError::Port),
            ("80:a:0", ForwardError::Target(TargetError::Port)),
            ("80:a b:1", ForwardError::Target(TargetError::Host)),
        ] {
            assert_eq!(text.parse::<Forward>(), Err(error), "{text}");
        }
        assert_eq!(socks_listen("1080").unwrap().to_string(), "127.0.0.1:1080");
        assert_eq!(socks_listen("[::1]:1080").unwrap().to_string(), "[::1]:1080");
        assert_eq!(socks_listen("x"), Err(ForwardError::Port));
        assert_eq!(socks_listen("x:1"), Err(ForwardError::Address));
    }
}
