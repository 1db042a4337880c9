//! Patterns for paths by the rules of gitignore(5). A match takes at most as many steps as the
//! pattern has bytes times those of the path: patterns come from peers, too.
//!
//! | in a pattern | matches |
//! |---|---|
//! | `*`, `?` | any run of bytes, any byte; no slash |
//! | `[a-z]`, `[!a-z]`, `[[:digit:]]` | a byte of these, a byte that is none of these; no slash |
//! | `**/`, `/**/` | any number of directories, none included |
//! | `/**` at the end | all that is in a directory |
//! | `\` and a byte | this byte |
//! | a slash at the end | directories only |
//! | no other slash | an entry of this name, however deep |
//! | another slash | a path from the top of the tree |

/// The longest pattern in bytes.
pub const MAX_PATTERN_LEN: usize = 1_024;

/// A pattern that can be held against paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPattern {
    tokens: Vec<PatternToken>,
    only_directories: bool,
    /// Whether the pattern is compared with the whole path, instead of its last component.
    is_path: bool,
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternToken {
    Byte(u8),
    /// Any byte but a slash.
    AnyByte,
    /// A byte of a set, a bit for each.
    OneOf([u64; 4]),
    /// A run of bytes without a slash.
    Run,
    /// A run of bytes with slashes.
    RunOfAll,
    /// The beginning of any number of directories: none, or those that
    /// [`PatternToken::InDirectories`] matches.
    Directories,
    /// Bytes of directories, up to a slash.
    InDirectories,
}

impl PathPattern {
    /// Reads a pattern. `None`: it is empty or longer than [`MAX_PATTERN_LEN`], or ends within
    /// brackets or behind a backslash.
    pub(crate) fn new(pattern: &[u8]) -> Option<Self> {
        if pattern.len() > MAX_PATTERN_LEN {
            return None;
        }
        let (pattern, only_directories) = match pattern {
            [rest @ .., b'/'] => (rest, true),
            all => (all, false),
        };
        let is_path = pattern.contains(&b'/');
        let pattern = pattern.strip_prefix(b"/").unwrap_or(pattern);
        if pattern.is_empty() {
            return None;
        }
        Some(Self { tokens: tokens(pattern)?, only_directories, is_path })
    }

    /// Whether the pattern matches an entry, given by its path from the top of the tree.
    pub(crate) fn matches(&self, path: &[u8], is_directory: bool) -> bool {
        if self.only_directories && !is_directory {
            return false;
        }
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        self.matches_text(if self.is_path { path } else { name })
    }

    /// Matches the text, with the set of all possible places in the pattern.
    fn matches_text(&self, text: &[u8]) -> bool {
        let length = self.tokens.len();
        let (mut places, mut next) = (vec![false; length + 1], vec![false; length + 1]);
        self.enter(0, &mut places);
        for byte in text {
            let mut is_alive = false;
            for (place, token) in self.tokens.iter().enumerate() {
                if !std::mem::take(places.get_mut(place).unwrap_or(&mut false)) {
                    continue;
                }
                is_alive = true;
                let stays = match token {
                    PatternToken::Run => *byte != b'/',
                    PatternToken::RunOfAll | PatternToken::InDirectories => true,
                    _ => false,
                };
                let passes = match token {
                    PatternToken::Byte(own) => own == byte,
                    PatternToken::AnyByte => *byte != b'/',
                    PatternToken::OneOf(set) => has(set, *byte),
                    PatternToken::InDirectories => *byte == b'/',
                    PatternToken::Run | PatternToken::RunOfAll | PatternToken::Directories => false,
                };
                if passes {
                    self.enter(place + 1, &mut next);
                }
                if stays {
                    // Behind a run is where the text may be without another byte of it.
                    let behind = !matches!(token, PatternToken::InDirectories);
                    next.get_mut(place).into_iter().for_each(|it| *it = true);
                    if behind {
                        self.enter(place + 1, &mut next);
                    }
                }
            }
            if !is_alive {
                return false;
            }
            std::mem::swap(&mut places, &mut next);
            next.fill(false);
        }
        places.last().copied().unwrap_or_default()
    }

    /// Marks a place in the pattern, and the following places that need no byte.
    fn enter(&self, mut place: usize, places: &mut [bool]) {
        loop {
            let Some(mark) = places.get_mut(place) else { return };
            if std::mem::replace(mark, true) {
                return;
            }
            match self.tokens.get(place) {
                Some(PatternToken::Run | PatternToken::RunOfAll) => place += 1,
                Some(PatternToken::Directories) => {
                    places.get_mut(place).into_iter().for_each(|it| *it = false);
                    places.get_mut(place + 1).into_iter().for_each(|it| *it = true);
                    place += 2;
                }
                _ => return,
            }
        }
    }
}

fn tokens(pattern: &[u8]) -> Option<Vec<PatternToken>> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    let byte_at = |at: usize| pattern.get(at).copied();
    while let Some(byte) = byte_at(at) {
        at += 1;
        let token = match byte {
            b'?' => PatternToken::AnyByte,
            b'\\' => {
                at += 1;
                PatternToken::Byte(byte_at(at - 1)?)
            }
            b'[' => {
                let (set, end) = set(pattern, at)?;
                at = end;
                PatternToken::OneOf(set)
            }
            b'*' => {
                let begin = at - 1;
                while byte_at(at) == Some(b'*') {
                    at += 1;
                }
                let is_first = begin == 0 || byte_at(begin - 1) == Some(b'/');
                match byte_at(at) {
                    None if is_first && at - begin > 1 => PatternToken::RunOfAll,
                    Some(b'/') if is_first && at - begin > 1 => {
                        at += 1;
                        if tokens.last() == Some(&PatternToken::InDirectories) {
                            continue;
                        }
                        tokens.push(PatternToken::Directories);
                        PatternToken::InDirectories
                    }
                    _ => PatternToken::Run,
                }
            }
            byte => PatternToken::Byte(byte),
        };
        tokens.push(token);
    }
    Some(tokens)
}

/// The bytes between brackets, and where the pattern goes on. `at` is behind the opening one.
fn set(pattern: &[u8], mut at: usize) -> Option<([u64; 4], usize)> {
    let byte_at = |at: usize| pattern.get(at).copied();
    let is_negated = matches!(byte_at(at), Some(b'!' | b'^'));
    at += usize::from(is_negated);
    let begin = at;
    let mut set = [0; 4];
    loop {
        let mut first = byte_at(at)?;
        if first == b']' && at > begin {
            break;
        }
        let class = pattern.get(at..).and_then(|rest| rest.strip_prefix(b"[:"));
        if let Some((name, rest)) = class.and_then(|rest| rest.split_at_checked(end_of_class(rest)?)) {
            (0..=u8::MAX).filter(|byte| is_of_class(name, *byte)).for_each(|byte| insert(&mut set, byte));
            if !CHARACTER_CLASSES.contains(&name) {
                return None;
            }
            at = pattern.len() - rest.len() + 2;
            continue;
        }
        if first == b'\\' {
            at += 1;
            first = byte_at(at)?;
        }
        at += 1;
        let mut last = first;
        if byte_at(at) == Some(b'-') && byte_at(at + 1).is_some_and(|byte| byte != b']') {
            at += 1;
            last = byte_at(at)?;
            if last == b'\\' {
                at += 1;
                last = byte_at(at)?;
            }
            at += 1;
        }
        (first..=last).for_each(|byte| insert(&mut set, byte));
    }
    if is_negated {
        set = set.map(|bits: u64| !bits);
    }
    set = [set[0] & !(1 << b'/'), set[1], set[2], set[3]];
    Some((set, at + 1))
}

/// The classes of characters that brackets may name.
const CHARACTER_CLASSES: [&[u8]; 12] = [
    b"alnum", b"alpha", b"blank", b"cntrl", b"digit", b"graph", b"lower", b"print", b"punct", b"space",
    b"upper", b"xdigit",
];

/// The length of the name of a class, which `:]` follows.
fn end_of_class(rest: &[u8]) -> Option<usize> {
    let length = rest.iter().position(|byte| !byte.is_ascii_alphabetic())?;
    rest.get(length..)?.starts_with(b":]").then_some(length)
}

const fn is_of_class(name: &[u8], byte: u8) -> bool {
    match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => byte.is_ascii_whitespace() || byte == 0x0b,
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => false,
    }
}

fn insert(set: &mut [u64; 4], byte: u8) {
    set.get_mut(usize::from(byte >> 6)).into_iter().for_each(|bits| *bits |= 1 << (byte & 63));
}

fn has(set: &[u64; 4], byte: u8) -> bool {
    set.get(usize::from(byte >> 6)).is_some_and(|bits| bits >> (byte & 63) & 1 == 1)
}
