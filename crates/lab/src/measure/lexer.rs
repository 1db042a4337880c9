//! Takes a measure apart. What a word may hold depends on where it stands, so the parser asks for
//! what it expects.

use super::measure_error::MeasureError;

/// The next piece of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Number(f64),
    Word(&'a str),
    /// One of `+ - * / ( ) [ ] , =`.
    Sign(char),
    /// Any other character.
    Stray(char),
    End,
}

impl core::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => write!(f, "`{word}`"),
            Self::Sign(sign) | Self::Stray(sign) => write!(f, "`{sign}`"),
            Self::End => f.write_str("the end"),
        }
    }
}

/// A place in the text.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The byte where the next piece begins.
    pub(super) fn place(&mut self) -> usize {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.at
    }

    /// The byte behind the last piece.
    pub(super) const fn behind(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (piece, _) = self.rest().split_at_checked(length).unwrap_or_default();
        self.at += length;
        piece
    }

    /// An error about the next piece.
    pub(super) fn wrong<T>(&mut self, what: impl Into<String>) -> Result<T, MeasureError> {
        Err(MeasureError { at: self.place(), what: what.into() })
    }

    /// The next piece, which stays.
    pub(super) fn peek(&mut self) -> Result<Token<'a>, MeasureError> {
        self.clone().next()
    }

    /// Removes the next token from the text.
    pub(super) fn next(&mut self) -> Result<Token<'a>, MeasureError> {
        let place = self.place();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        Ok(match first {
            '0'..='9' | '.' => {
                let digits = self.take(number_length(rest));
                match digits.parse::<f64>() {
                    Ok(number) if number.is_finite() => Token::Number(number),
                    _ => return Err(MeasureError { at: place, what: format!("`{digits}` is no number") }),
                }
            }
            '+' | '-' | '*' | '/' | '(' | ')' | '[' | ']' | ',' | '=' => {
                self.take(1);
                Token::Sign(first)
            }
            letter if letter.is_alphabetic() || letter == '_' => {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
                Token::Word(self.take(end.unwrap_or(rest.len())))
            }
            stray => {
                self.take(stray.len_utf8());
                Token::Stray(stray)
            }
        })
    }

    /// Removes `sign` if it is the next token. Returns whether it was the next token.
    pub(super) fn skip(&mut self, sign: char) -> Result<bool, MeasureError> {
        let next = self.peek()? == Token::Sign(sign);
        if next {
            self.next()?;
        }
        Ok(next)
    }

    /// A name: the text up to one of `ends`, or in quotes.
    pub(super) fn name(&mut self, what: &str, ends: &[char]) -> Result<String, MeasureError> {
        let place = self.place();
        let rest = self.rest();
        if let Some(quote @ ('"' | '\'')) = rest.chars().next() {
            return match rest[1..].find(quote) {
                Some(length) => Ok(self.take(length + 2)[1..=length].to_owned()),
                None => Err(MeasureError { at: place, what: format!("this {quote} is never closed") }),
            };
        }
        let length = rest.find(|c: char| ends.contains(&c)).unwrap_or(rest.len());
        let name = rest[..length].trim_end();
        if name.is_empty() {
            return Err(MeasureError { at: place, what: format!("expected the name of {what}") });
        }
        if let Some(inside) = name.find(|c: char| c.is_whitespace() || "()[]=\"'".contains(c)) {
            let what = format!(
                "`{name}`: expected the name of {what}; one with blanks, brackets or `=` stands in quotes"
            );
            return Err(MeasureError { at: place + inside, what });
        }
        Ok(self.take(name.len()).to_owned())
    }
}

/// Returns the length of a number in bytes: digits, perhaps a point and digits, and perhaps an
/// exponent.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = (end + 1 + sign).min(bytes.len());
        if digits(exponent) > exponent {
            end = digits(exponent);
        }
    }
    end
}
