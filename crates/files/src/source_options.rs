//! How a tree is read and compared.

/// Options of sending.
#[derive(Clone, Copy, Debug)]
pub struct SourceOptions {
    /// Send setuid and setgid bits as well. Off by default: with these bits a program runs with the
    /// rights of its owner or group. The sticky bit of directories is always sent, since it only
    /// restricts who may delete files.
    pub special_modes: bool,
    /// Compare the contents of files that have the same size and time at both ends.
    pub compares_contents: bool,
    /// Replace files of the receiver that are newer.
    pub replaces_newer: bool,
    /// Whether the receiver may keep its newer files without making the transfer incomplete.
    pub expects_newer: bool,
    /// Whether the receiver is to move entries to its trash that are below a sent directory and not
    /// at this host.
    pub deletes: bool,
    /// Whether this is a dry run. The receiver must be told so before the manifest.
    pub looks: bool,
    /// Whether the entries of a named directory are sent without its name.
    pub into_root: bool,
    /// Send further names of a file as hard links to the first.
    pub hard_links: bool,
    /// Files held open at a time.
    pub open_files: usize,
}

impl SourceOptions {
    /// The default options.
    pub const DEFAULT: Self = Self {
        special_modes: false,
        compares_contents: false,
        replaces_newer: false,
        expects_newer: false,
        deletes: false,
        looks: false,
        into_root: false,
        hard_links: false,
        open_files: 64,
    };
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}
