//! Decides who may see the page: the browser that opened the URL with the token first, which then
//! has a cookie.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use byway_net::seed;
use data_encoding::HEXLOWER;
use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;

/// Bytes of a token and of a session's secret.
const SECRET_LEN: usize = 24;
/// Bytes of the folder's name, which no other server of this host knows.
const FOLDER_LEN: usize = 12;

/// The secrets that admit one browser.
pub struct Visitors {
    /// The one-time secret of the URL. `None`: it was used.
    token: Mutex<Option<String>>,
    session: String,
    folder: String,
}

impl Visitors {
    /// Secrets that nobody can guess.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new() -> io::Result<Self> {
        let secret = || seed::<SECRET_LEN>().map(|bytes| HEXLOWER.encode(&bytes)).map_err(io::Error::other);
        let folder = seed::<FOLDER_LEN>().map_err(io::Error::other)?;
        Ok(Self { token: Mutex::new(Some(secret()?)), session: secret()?, folder: HEXLOWER.encode(&folder) })
    }

    /// The token that was not used yet.
    pub fn token(&self) -> Option<String> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The folder of all pages. A browser sends a cookie to every server of a host, whatever its
    /// port. It sends one of a folder only where that folder is asked for.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// Uses the token up. Whether it is the right one.
    pub fn admit(&self, token: &str) -> bool {
        let mut kept = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let is_right = kept.as_ref().is_some_and(|kept| is_same(kept.as_bytes(), token.as_bytes()));
        if is_right {
            *kept = None;
        }
        is_right
    }

    /// Returns the field `Set-Cookie` for the admitted browser.
    pub fn cookie(&self) -> String {
        format!("{COOKIE_NAME}={}; Path=/{}/; HttpOnly; SameSite=Strict", self.session, self.folder)
    }

    /// Whether a request with these fields comes from the admitted browser.
    pub fn knows(&self, fields: &HeaderMap) -> bool {
        // In one field are the cookies of all servers of this host, of any bytes.
        let cookies = fields.get_all(COOKIE).iter();
        let pairs = cookies.flat_map(|cookie| cookie.as_bytes().split(|byte| *byte == b';'));
        let value = |pair: &[u8]| {
            let value = pair.trim_ascii().strip_prefix(COOKIE_NAME.as_bytes())?.strip_prefix(b"=")?;
            Some(is_same(value, self.session.as_bytes()))
        };
        pairs.filter_map(value).any(|is_right| is_right)
    }
}

/// The cookie's name.
const COOKIE_NAME: &str = "byway-view";

/// Compares two secrets in constant time.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let pairs = one.iter().zip(other);
    one.len() == other.len() && pairs.fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_token_is_good_once() {
        let visitors = Visitors::new().unwrap();
        let token = visitors.token().unwrap();
        for wrong in ["", "x", &token[1..], &format!("{token}0"), &token.to_uppercase()] {
            assert!(!visitors.admit(wrong) || wrong == token, "{wrong}");
        }
        assert!(visitors.admit(&token));
        assert!(!visitors.admit(&token) && visitors.token().is_none());
        assert_ne!(Visitors::new().unwrap().token(), Some(token));
    }

    #[test]
    fn a_cookie_tells_the_browser_that_was_admitted() {
        let visitors = Visitors::new().unwrap();
        let cookie = visitors.cookie();
        let pair = cookie.split(';').next().unwrap();
        let knows = |cookie: &str| visitors.knows(&HeaderMap::from_iter([(COOKIE, cookie.parse().unwrap())]));
        assert!(knows(pair) && knows(&format!("other=1; {pair}; more=2")));
        for wrong in ["", "byway-view=", "byway-view", &pair[..pair.len() - 1], &format!("x{pair}")] {
            assert!(!knows(wrong), "{wrong}");
        }
        assert!(!visitors.knows(&HeaderMap::new()));
        let odd = HeaderValue::from_bytes(format!("dev=é; {pair}").as_bytes()).unwrap();
        assert!(visitors.knows(&HeaderMap::from_iter([(COOKIE, odd)])), "of another server");
    }
}
