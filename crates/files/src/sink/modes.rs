//! Which bits of a mode a receiver sets: the sender chooses modes for its own host, where other
//! people may be trusted.

use crate::manifest::MODE_MASK;

/// The mode bits of reading, writing and executing, for all.
const PERMISSION_BITS: u16 = 0o777;
/// The mode bit of a directory in which users may remove only their own files.
const STICKY_BIT: u16 = 0o1000;

/// The mode bits of the sender that are set on files and directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    /// All bits are set, setuid and setgid included.
    Kept,
    /// Permissions without the bits of this mask, which a umask is; and the sticky bit of
    /// directories, which takes rights away.
    Masked(u16),
}

impl Modes {
    /// The mode of a directory that was sent with `mode`.
    pub(super) const fn of_directory(self, mode: u16) -> u16 {
        self.of_file(mode) | mode & STICKY_BIT
    }

    /// The mode of a file that was sent with `mode`.
    pub(super) const fn of_file(self, mode: u16) -> u16 {
        match self {
            Self::Kept => mode & MODE_MASK,
            Self::Masked(umask) => mode & PERMISSION_BITS & !umask,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_rights_that_the_receivers_umask_denies() {
        let masked = Modes::Masked(0o022);
        let files = [0o666, 0o777, 0o644, 0o4755, 0o2775, 0o1777, 0o000];
        assert_eq!(files.map(|mode| masked.of_file(mode)), [0o644, 0o755, 0o644, 0o755, 0o755, 0o755, 0o000]);
        assert_eq!(files.map(|mode| Modes::Kept.of_file(mode)), files);
        assert_eq!(Modes::Masked(0o077).of_file(0o755), 0o700);
    }

    #[test]
    fn a_directory_never_loses_its_sticky_bit_alone() {
        for umask in [0, 0o002, 0o022, 0o077] {
            let mode = Modes::Masked(umask).of_directory(0o1777);
            assert_eq!(mode, 0o1000 | 0o777 & !umask, "{umask:o}");
        }
        assert_eq!(Modes::Kept.of_directory(0o3777), 0o3777);
        assert_eq!(Modes::Masked(0).of_directory(0o2777), 0o777);
    }
}
